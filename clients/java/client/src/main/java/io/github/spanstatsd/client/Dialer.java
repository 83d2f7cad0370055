package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Tries to connect until a daemon welcomes the client, with pauses between, and says so when none does. It is the sender's. */
final class Dialer {
    /** The longest pause while the client is closing. */
    private static final long HURRY = TimeUnit.MILLISECONDS.toNanos(50);

    private final Config config;
    private final Shared shared;
    private final Outgoing outgoing;
    private final Herald herald;
    private final Deadline deadline;
    private final ByteBuffer scratch;
    private final Inbox inbox = new Inbox();
    private final Backoff backoff;
    private Selector selector;
    private String socket; // that was tried last
    private long since = System.nanoTime(); // when the last connection ended, or the client was opened
    private boolean isAway; // the daemon is, and that was told
    private boolean hasLeft; // and so it was that it is for too long

    Dialer(Config config, Shared shared, Outgoing outgoing, Herald herald, Deadline deadline, ByteBuffer scratch) {
        this.config = config;
        this.shared = shared;
        this.outgoing = outgoing;
        this.herald = herald;
        this.deadline = deadline;
        this.scratch = scratch;
        backoff = new Backoff(config.maxBackoff.toNanos());
    }

    void selectBy(Selector selector) {
        this.selector = selector;
    }

    /** The path of the socket that was tried last. */
    String socket() {
        return socket;
    }

    /**
     * Tries until there is a connection. Once the client is closing it tries one last time, and only if there is something to
     * send; where a daemon is to say what became of what another had, it tries for as long as it may.
     */
    Connection connect() throws IOException {
        while (!config.origin.isDone() && !deadline.isSet()) {
            Connection.select(selector, Deadline.NEVER);
            shared.looks();
        }
        while (config.origin.isDone()) {
            boolean isClosing = deadline.isSet();
            if (isClosing) {
                outgoing.sealAll();
                if (outgoing.isEmpty()) {
                    return null;
                }
            }
            try {
                Connection connection = open();
                isAway = hasLeft = false;
                return connection;
            } catch (IOException e) {
                away(e);
            }
            if (isClosing && (!outgoing.isAsking() || deadline.left() <= 0)) {
                return null;
            }
            refuseIfLong();
            pause(isClosing);
        }
        return null; // it is closed before anybody has said whose spans these are
    }

    /** Connects where the configuration says, or at the first socket path where a daemon listens. Fails with what the first says. */
    private Connection open() throws IOException {
        List<String> points = config.socketPaths();
        IOException first = null;
        for (String point : points) {
            try {
                socket = point;
                ByteBuffer hello = Messages.hello(scratch, config.name, config.origin.join(), true, outgoing.earlier());
                return Connection.open(point, hello, selector, deadline, inbox, shared);
            } catch (IOException e) {
                first = first == null ? e : first;
            }
        }
        socket = points.get(0);
        throw first;
    }

    private void away(IOException why) {
        if (!isAway) {
            isAway = true;
            herald.tell(Event.AWAY, "cannot reach spanstatsd at " + socket + ", spans are buffered while it is tried again: "
                    + why.getMessage());
        }
    }

    /** Shuts the gate once the daemon is away for longer than it is worth waiting for. What was buffered before stays for it. */
    private void refuseIfLong() {
        if (hasLeft || System.nanoTime() - since < config.maxAway.toNanos()) {
            return;
        }
        hasLeft = true;
        shared.gate.shut(Reason.DISCONNECTED);
        herald.tell(Event.AWAY, "spanstatsd is still away from " + socket + ", spans are refused and counted until it is back");
    }

    /** Waits before the next attempt. A client that begins to close does not wait for one. */
    private void pause(boolean isClosing) throws IOException {
        long nanos = backoff.next();
        long until = System.nanoTime() + (isClosing ? Math.min(nanos, HURRY) : nanos);
        long left = until - System.nanoTime();
        while (left > 0 && deadline.left() > 0 && deadline.isSet() == isClosing) {
            Connection.select(selector, Math.min(left, deadline.left()));
            shared.looks();
            left = until - System.nanoTime();
        }
    }

    /** A connection has ended, and another is to be tried. */
    void parted(Connection c) {
        since = System.nanoTime();
        backoff.reset(since - c.since);
    }
}
