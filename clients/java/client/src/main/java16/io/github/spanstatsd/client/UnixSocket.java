package io.github.spanstatsd.client;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;

/** Sockets of the Unix domain, which Java has from release 16 on. */
final class UnixSocket {
    private UnixSocket() {}

    /** Fails where there are none. */
    static void check() {}

    /**
     * Begins to connect without waiting: {@link SocketChannel#finishConnect} says when it is done.
     * The virtual machine opens every socket close-on-exec, so no child that it starts has a copy.
     */
    static SocketChannel connect(String path) throws IOException {
        SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            channel.configureBlocking(false);
            channel.connect(UnixDomainSocketAddress.of(path));
            return channel;
        } catch (IOException | RuntimeException e) {
            channel.close();
            throw e;
        }
    }
}
