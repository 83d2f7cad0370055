package io.github.spanstatsd.client;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** Configuration of a client. All defaults are suitable for production. Immutable. */
public final class Config {
    /**
     * Environment variable with the path of the daemon's socket, used if the configuration does not
     * set one.
     */
    public static final String SOCKET_VARIABLE = "SPANSTATSD_SOCKET";

    /** Maximum length of a Unix socket's path. */
    private static final int MOST_PATH_BYTES = 107;

    private final String socket; // null if not set
    final CompletableFuture<Origin> origin;
    final String name;
    final int bufferBytes;
    final int maxKept;
    final int maxKeys;
    final Duration maxAge;
    final Duration maxBackoff;
    final Duration maxAway;
    final Duration closeTimeout;
    final boolean shutdownHook;
    final Listener listener;

    private Config(Builder b) {
        socket = orDefault(orDefault(b.socket, System.getenv(SOCKET_VARIABLE)), null);
        origin = b.origin == null ? CompletableFuture.completedFuture(Origin.detect()) : b.origin;
        name = orDefault(b.name, "spanstatsd-java");
        bufferBytes = b.bufferBytes;
        maxKept = b.maxKept;
        maxKeys = b.maxKeys;
        maxAge = b.maxAge;
        maxBackoff = b.maxBackoff;
        maxAway = b.maxAway;
        closeTimeout = b.closeTimeout;
        shutdownHook = b.shutdownHook;
        listener = b.listener == null ? (event, message) -> {} : b.listener;
        check();
    }

    private void check() {
        int pathBytes = orDefault(socket, "").getBytes(StandardCharsets.UTF_8).length;
        if (pathBytes > MOST_PATH_BYTES) {
            throw new IllegalArgumentException("socket has " + pathBytes + " bytes; choose a path of at most "
                    + MOST_PATH_BYTES);
        }
        if (bufferBytes < 2 * Buffer.BYTES || bufferBytes > 1 << 30) {
            throw new IllegalArgumentException("bufferBytes is " + bufferBytes + "; choose " + 2 * Buffer.BYTES + " to " + (1 << 30));
        }
        if (maxKept < 0 || maxKept > 1 << 30) {
            throw new IllegalArgumentException("maxKept is " + maxKept + "; choose 0 to " + (1 << 30));
        }
        if (maxKeys < 0 || maxKeys > 1 << 16) {
            throw new IllegalArgumentException("maxKeys is " + maxKeys + "; choose 0 to " + (1 << 16));
        }
        for (Duration d : new Duration[] {maxAge, maxBackoff, maxAway}) {
            if (d.compareTo(Duration.ofMillis(1)) < 0 || d.compareTo(Duration.ofDays(1)) > 0) {
                throw new IllegalArgumentException("maxAge, maxBackoff and maxAway are " + maxAge + ", " + maxBackoff + " and "
                        + maxAway + "; choose from a millisecond to a day");
            }
        }
    }

    /** Paths of the daemon's socket, in the order in which an attempt to connect tries them. */
    List<String> socketPaths() {
        return socket == null ? SocketPaths.all(System::getenv) : List.of(socket);
    }

    private static String orDefault(String value, String otherwise) {
        return value == null || value.isEmpty() ? otherwise : value;
    }

    public static Builder builder() {
        return new Builder();
    }

    /** Builds a {@link Config}. */
    public static final class Builder {
        private String socket;
        private CompletableFuture<Origin> origin;
        private String name;
        private int bufferBytes = 2 << 20;
        private int maxKept = 4 << 20;
        private int maxKeys = 4096;
        private Duration maxAge = Duration.ofSeconds(5);
        private Duration maxBackoff = Duration.ofSeconds(5);
        private Duration maxAway = Duration.ofMinutes(1);
        private Duration closeTimeout = Duration.ofSeconds(5);
        private boolean shutdownHook = true;
        private Listener listener;

        private Builder() {}

        /**
         * Sets the path of the daemon's socket. Default: the value of {@value
         * Config#SOCKET_VARIABLE}, otherwise {@value SocketPaths#DEFAULT} or the socket of a daemon
         * that the same user has started manually.
         */
        public Builder socket(String socket) {
            this.socket = socket;
            return this;
        }

        /**
         * Sets the origin of the spans; default: {@link Origin#detect}. It is sent once per
         * connection.
         */
        public Builder origin(Origin origin) {
            return origin(CompletableFuture.completedFuture(origin));
        }

        /**
         * Sets an origin that becomes available later. The client connects when it is available.
         */
        public Builder origin(CompletableFuture<Origin> origin) {
            this.origin = origin;
            return this;
        }

        /** Sets the name of the tracer, for the daemon's log. */
        public Builder name(String name) {
            this.name = name;
            return this;
        }

        /**
         * Sets the memory outside of the heap for published spans that are not sent yet: 2 MiB by
         * default, at least 128 KiB.
         */
        public Builder bufferBytes(int bufferBytes) {
            this.bufferBytes = bufferBytes;
            return this;
        }

        /**
         * Sets the additional memory outside of the heap for sent spans that are not settled yet: 4
         * MiB by default, enough for 10 s at 10,000 spans per second. It is allocated as needed. If
         * the daemon is killed, the client replays from it the spans that no destination has
         * received. Over the limit, the oldest spans are released, and lost if the daemon is then
         * killed. 0 keeps no spans.
         */
        public Builder maxKept(int maxKept) {
            this.maxKept = maxKept;
            return this;
        }

        /**
         * Sets how many keys can be sent as numbers: 4096 by default. 0 sends every key in full.
         */
        public Builder maxKeys(int maxKeys) {
            this.maxKeys = maxKeys;
            return this;
        }

        /**
         * Sets how long a span waits for others before it is sent: 5 s by default. All spans are
         * sent shortly before the daemon's interval ends.
         */
        public Builder maxAge(Duration maxAge) {
            this.maxAge = maxAge;
            return this;
        }

        /** Sets the longest pause between two attempts to connect: 5 s by default. */
        public Builder maxBackoff(Duration maxBackoff) {
            this.maxBackoff = maxBackoff;
            return this;
        }

        /**
         * Sets how long spans are buffered while the daemon is unreachable: 1 min by default. After
         * that they are refused until it is reachable.
         */
        public Builder maxAway(Duration maxAway) {
            this.maxAway = maxAway;
            return this;
        }

        /**
         * Sets how long {@link SpanstatsClient#close()} and the shutdown hook may take: 5 s by
         * default.
         */
        public Builder closeTimeout(Duration closeTimeout) {
            this.closeTimeout = closeTimeout;
            return this;
        }

        /** Sets whether the end of the virtual machine closes the client: true by default. */
        public Builder shutdownHook(boolean shutdownHook) {
            this.shutdownHook = shutdownHook;
            return this;
        }

        /** Sets a listener for connection events; none by default. */
        public Builder listener(Listener listener) {
            this.listener = listener;
            return this;
        }

        /**
         * Builds the configuration.
         *
         * @throws IllegalArgumentException if a value is invalid
         */
        public Config build() {
            return new Config(this);
        }
    }
}
