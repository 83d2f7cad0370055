package io.github.spanstatsd.client;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;

/** Unix sockets, which Java supports from release 16 on. */
final class UnixSocket {
    private UnixSocket() {}

    /** Does nothing, because this Java release has Unix sockets. */
    static void check() {}

    /**
     * Starts to connect without waiting; {@link SocketChannel#finishConnect} reports when the
     * connection is established. The virtual machine opens every socket close-on-exec, so child
     * processes do not inherit it.
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
