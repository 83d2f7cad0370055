package io.github.spanstatsd.client;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** How a client is to run. Every default is a good choice. Immutable. */
public final class Config {
    /** The environment variable that says where the daemon listens, for a config that does not. */
    public static final String SOCKET_VARIABLE = "SPANSTATSD_SOCKET";

    /** What a Unix socket's address has room for. */
    private static final int MOST_PATH_BYTES = 107;

    private final String socket; // null where nobody says one
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
            throw new IllegalArgumentException("the socket's path has " + pathBytes + " bytes, an address has room for "
                    + MOST_PATH_BYTES + ": choose a shorter one");
        }
        if (bufferBytes < 2 * Buffer.BYTES || bufferBytes > 1 << 30) {
            throw new IllegalArgumentException("bufferBytes is " + bufferBytes + ": choose " + 2 * Buffer.BYTES + " to " + (1 << 30));
        }
        if (maxKept < 0 || maxKept > 1 << 30) {
            throw new IllegalArgumentException("maxKept is " + maxKept + ": choose 0 to " + (1 << 30));
        }
        if (maxKeys < 0 || maxKeys > 1 << 16) {
            throw new IllegalArgumentException("maxKeys is " + maxKeys + ": choose 0 to " + (1 << 16));
        }
        for (Duration d : new Duration[] {maxAge, maxBackoff, maxAway}) {
            if (d.compareTo(Duration.ofMillis(1)) < 0 || d.compareTo(Duration.ofDays(1)) > 0) {
                throw new IllegalArgumentException("maxAge, maxBackoff and maxAway are " + maxAge + ", " + maxBackoff + " and "
                        + maxAway + ": choose from a millisecond to a day");
            }
        }
    }

    /** Where the daemon may be, in the order in which an attempt to connect tries them. */
    List<String> socketPaths() {
        return socket == null ? SocketPaths.all(System::getenv) : List.of(socket);
    }

    private static String orDefault(String value, String otherwise) {
        return value == null || value.isEmpty() ? otherwise : value;
    }

    public static Builder builder() {
        return new Builder();
    }

    /** Makes a {@link Config}. */
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
         * The path of the daemon's socket, else what {@value Config#SOCKET_VARIABLE} says, else {@value SocketPaths#DEFAULT} or where
         * a daemon listens that this user has started by hand.
         */
        public Builder socket(String socket) {
            this.socket = socket;
            return this;
        }

        /** Who publishes, {@link Origin#detect} by default. It is sent once a connection. */
        public Builder origin(Origin origin) {
            return origin(CompletableFuture.completedFuture(origin));
        }

        /** The same where it is known later: the client connects once it is. */
        public Builder origin(CompletableFuture<Origin> origin) {
            this.origin = origin;
            return this;
        }

        /** Tells the daemon which tracer this is, for its log. */
        public Builder name(String name) {
            this.name = name;
            return this;
        }

        /** Room outside of the heap for all that is published and not sent yet: 2 MiB, at least 128 KiB. */
        public Builder bufferBytes(int bufferBytes) {
            this.bufferBytes = bufferBytes;
            return this;
        }

        /**
         * Room outside of the heap, besides, for what was handed over and whose outcome the daemon has not said yet: 4 MiB, which is
         * 10 s at 10,000 spans a second. It is taken as it is needed. Should the daemon die, the next one is handed over from it what
         * no destination has. Of what is beyond it the oldest is not kept, and lost if the daemon then dies. With 0 nothing is kept.
         */
        public Builder maxKept(int maxKept) {
            this.maxKept = maxKept;
            return this;
        }

        /** How many keys are known, to be sent as numbers: 4096. With 0 every key is sent whole. */
        public Builder maxKeys(int maxKeys) {
            this.maxKeys = maxKeys;
            return this;
        }

        /** The longest that a span waits for others before it is sent: 5 s. Shortly before the daemon's interval ends all is sent. */
        public Builder maxAge(Duration maxAge) {
            this.maxAge = maxAge;
            return this;
        }

        /** The longest pause between two attempts to connect: 5 s. */
        public Builder maxBackoff(Duration maxBackoff) {
            this.maxBackoff = maxBackoff;
            return this;
        }

        /** How long spans are buffered for a daemon that is away: 1 min. From then on they are refused until it is back. */
        public Builder maxAway(Duration maxAway) {
            this.maxAway = maxAway;
            return this;
        }

        /** How long {@link SpanstatsClient#close()} and the shutdown hook may take: 5 s. */
        public Builder closeTimeout(Duration closeTimeout) {
            this.closeTimeout = closeTimeout;
            return this;
        }

        /** Whether the end of the virtual machine closes the client: true. */
        public Builder shutdownHook(boolean shutdownHook) {
            this.shutdownHook = shutdownHook;
            return this;
        }

        /** Hears what becomes of the connection; nobody does by default. */
        public Builder listener(Listener listener) {
            this.listener = listener;
            return this;
        }

        /** Fails with an {@link IllegalArgumentException} that says what can't work. */
        public Config build() {
            return new Config(this);
        }
    }
}
