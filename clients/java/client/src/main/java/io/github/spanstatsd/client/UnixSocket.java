package io.github.spanstatsd.client;

import java.nio.channels.SocketChannel;

/**
 * Unix sockets, which Java supports from release 16 on; for those releases the jar contains another
 * class of this name. TCP is not an alternative: only a Unix socket fails a write exactly at the
 * byte from which on nothing is read, and the accounting of both sides depends on that.
 */
final class UnixSocket {
    private UnixSocket() {}

    /** Throws an exception, because this Java release has no Unix sockets. */
    static void check() {
        throw new UnsupportedOperationException("spanstatsd is reached by a Unix socket, which Java has from release 16 on, and this is "
                + System.getProperty("java.version") + ": run with Java 16 or later");
    }

    /** Starts to connect. */
    static SocketChannel connect(String path) {
        check();
        return null;
    }
}
