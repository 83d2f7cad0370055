package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Tries to connect until a daemon sends a welcome, with pauses between attempts, and reports an
 * unreachable daemon. Only the sender uses it.
 */
final class Dialer {
    /** Longest pause while the client is closing. */
    private static final long LONGEST_WHILE_CLOSING = TimeUnit.MILLISECONDS.toNanos(50);

    private final Config config;
    private final Shared shared;
    private final Outgoing outgoing;
    private final EventNotifier notifier;
    private final Deadline deadline;
    private final ByteBuffer scratch;
    private final Inbox inbox = new Inbox();
    private final Backoff backoff;
    private Selector selector;
    private String socket; // path of the last attempt
    private long since = System.nanoTime(); // when the last connection ended, or the client was opened
    private boolean isAway; // the daemon is unreachable, and the listener was notified
    private boolean isRefusing; // the daemon has been unreachable for too long, and the gate is shut

    Dialer(Config config, Shared shared, Outgoing outgoing, EventNotifier notifier, Deadline deadline, ByteBuffer scratch) {
        this.config = config;
        this.shared = shared;
        this.outgoing = outgoing;
        this.notifier = notifier;
        this.deadline = deadline;
        this.scratch = scratch;
        backoff = new Backoff(config.maxBackoff.toNanos());
    }

    void selectBy(Selector selector) {
        this.selector = selector;
    }

    /** Returns the path of the last attempt. */
    String socket() {
        return socket;
    }

    /**
     * Tries until there is a connection. While the client is closing it tries once, and only if
     * there are spans to send. If a daemon has to report on spans of its predecessor, it tries
     * until the deadline.
     */
    Connection connect() throws IOException {
        while (!config.origin.isDone() && !deadline.isSet()) {
            Connection.select(selector, Deadline.NEVER);
            shared.clearWakeup();
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
                isAway = isRefusing = false;
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
        return null; // closed before the origin was available
    }

    /**
     * Connects to the configured socket, or to the first socket path with a daemon. If all fail, it
     * throws the error of the first.
     */
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
            notifier.tell(Event.AWAY, "cannot reach spanstatsd at " + socket + ", spans are buffered while it is tried again: "
                    + why.getMessage());
        }
    }

    /**
     * Shuts the gate when the daemon has been unreachable for too long. Spans buffered before are
     * kept.
     */
    private void refuseIfLong() {
        if (isRefusing || System.nanoTime() - since < config.maxAway.toNanos()) {
            return;
        }
        isRefusing = true;
        shared.gate.shut(Reason.DISCONNECTED);
        notifier.tell(Event.AWAY, "spanstatsd is still away from " + socket + ", spans are refused and counted until it is back");
    }

    /** Waits before the next attempt. The wait ends when the client begins to close. */
    private void pause(boolean isClosing) throws IOException {
        long nanos = backoff.next();
        long until = System.nanoTime() + (isClosing ? Math.min(nanos, LONGEST_WHILE_CLOSING) : nanos);
        long left = until - System.nanoTime();
        while (left > 0 && deadline.left() > 0 && deadline.isSet() == isClosing) {
            Connection.select(selector, Math.min(left, deadline.left()));
            shared.clearWakeup();
            left = until - System.nanoTime();
        }
    }

    /** Records that a connection ended and a new one is needed. */
    void onDisconnect(Connection c) {
        since = System.nanoTime();
        backoff.reset(since - c.since);
    }
}
