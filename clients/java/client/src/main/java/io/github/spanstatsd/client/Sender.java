package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** The thread that owns sealed buffers and the connection. */
final class Sender {
    /** How many flushes wait to be asked, so that callers who never come back for the answer take bounded memory. */
    static final int MOST_FLUSHES = 1024;

    /** What is far enough away to be never, and near enough to be added to. */
    static final long NEVER = Long.MAX_VALUE / 4;

    private final Config config;
    private final Shared shared;
    private final Keys keys;
    private final Outgoing outgoing;
    private final Reports reports;
    private final Herald herald;
    private final Thread thread = new Thread(null, this::run, "spanstatsd-client", 0, false);
    private final CountDownLatch ended = new CountDownLatch(1);
    private final Deque<CompletableFuture<Void>> flushes = new ArrayDeque<>(); // guarded by itself
    private final AtomicLong abortAt = new AtomicLong(System.nanoTime() + NEVER);
    private volatile boolean isClosing;
    private volatile boolean lostNothing = true;

    private final AtomicLong connects = new AtomicLong();
    private volatile String daemon;

    private final Deque<CompletableFuture<Void>> asking = new ArrayDeque<>();
    private final ByteBuffer scratch = ByteBuffer.allocateDirect(Messages.BYTES);
    private final Inbox inbox = new Inbox();
    private final Backoff backoff;
    private Selector selector;
    private Schedule schedule;
    private boolean isDue; // the clock runs for what the stripes hold, as it does while the client is armed
    private long dueAt;
    private long since = System.nanoTime(); // when the last connection ended, or the client was opened
    private boolean isAway; // the daemon is, and that was told
    private boolean hasLeft; // and so it was that it is for too long
    private boolean saidBye;

    Sender(Config config, Shared shared, Pool pool, Stripe[] stripes, KeyTable table, Consumer<long[]> addRefused) {
        this.config = config;
        this.shared = shared;
        keys = new Keys(config.maxKeys, stripes, table);
        reports = new Reports(addRefused);
        outgoing = new Outgoing(shared, pool, stripes, keys, reports, scratch);
        herald = new Herald(config.listener);
        backoff = new Backoff(config.maxBackoff.toNanos());
        thread.setDaemon(true);
        thread.setContextClassLoader(null); // the caller's may be unloaded one day
    }

    void start() {
        try {
            selector = Selector.open();
        } catch (IOException e) {
            throw new IllegalStateException("open client: no selector: " + e.getMessage(), e);
        }
        shared.wakeBy(selector::wakeup);
        config.origin.whenComplete((known, failure) -> selector.wakeup());
        thread.start();
    }

    CompletableFuture<Void> flush() {
        CompletableFuture<Void> answer = new CompletableFuture<>();
        synchronized (flushes) {
            if (flushes.size() == MOST_FLUSHES) {
                flushes.removeIf(CompletableFuture::isDone); // their callers have let go of them
            }
            if (flushes.size() == MOST_FLUSHES) {
                answer.completeExceptionally(new FlushException("flush spans: " + MOST_FLUSHES + " flushes wait for a daemon already"));
                return answer;
            }
            flushes.add(answer);
        }
        shared.wake();
        if (ended.getCount() == 0) {
            failFlushes();
        }
        return answer;
    }

    /** Has the sender end in so much time, and waits for it. */
    boolean finish(Duration timeout) {
        long until = System.nanoTime() + Math.min(timeout.toNanos(), NEVER);
        abortAt.accumulateAndGet(until, (a, b) -> a - b < 0 ? a : b);
        isClosing = true;
        selector.wakeup(); // whatever it waits for, and has word for
        boolean wasInterrupted = false;
        while (true) {
            try {
                ended.await();
                break;
            } catch (InterruptedException e) {
                wasInterrupted = true;
                abortAt.set(System.nanoTime());
                selector.wakeup();
            }
        }
        if (wasInterrupted) {
            Thread.currentThread().interrupt();
        }
        return lostNothing;
    }

    void addTo(Stats stats) {
        stats.sent = outgoing.sent();
        reports.addTo(stats);
        stats.connects = connects.get();
        stats.daemon = daemon;
        stats.knownKeys = keys.count();
    }

    private void run() {
        try {
            boolean isOver = false;
            while (!isOver) {
                Connection connection = connect();
                if (connection == null) {
                    break;
                }
                try {
                    isOver = serve(connection);
                } catch (IOException e) {
                    // The connection says why it ended, and what was not sent waits for the next.
                } finally {
                    part(connection);
                }
            }
        } catch (Throwable e) {
            herald.tell(Event.FAILED, "a defect ended the client, spans are refused and counted: " + e);
        } finally {
            giveUp();
        }
    }

    /** Tries until there is a connection. Once the client is closing it tries one last time, and only if there is something to send. */
    private Connection connect() throws IOException {
        while (!config.origin.isDone() && !isClosing) {
            Connection.select(selector, NEVER);
            shared.looks();
        }
        while (config.origin.isDone()) {
            boolean isLast = isClosing;
            if (isLast) {
                outgoing.sealAll();
                if (outgoing.isEmpty()) {
                    return null;
                }
            }
            try {
                Connection connection = Connection.open(config.socket, Messages.hello(scratch, config.name, config.origin.join(), true), selector,
                        abortAt::get, inbox, shared);
                welcome(connection);
                return connection;
            } catch (IOException e) {
                if (!isAway) {
                    isAway = true;
                    herald.tell(Event.AWAY, "cannot reach spanstatsd at " + config.socket + ", spans are buffered while it is tried again: "
                            + e.getMessage());
                }
            }
            if (isLast) {
                return null;
            }
            refuseIfLong();
            pause(backoff.next());
        }
        return null; // it is closed before anybody has said whose spans these are
    }

    private void pause(long nanos) throws IOException {
        long until = System.nanoTime() + nanos;
        for (long left = nanos; left > 0 && !isClosing; left = until - System.nanoTime()) {
            Connection.select(selector, left);
            shared.looks();
        }
    }

    /** Shuts the gate once the daemon is away for longer than it is worth waiting for. What was buffered before stays for it. */
    private void refuseIfLong() {
        if (hasLeft || System.nanoTime() - since < config.maxAway.toNanos()) {
            return;
        }
        hasLeft = true;
        shared.gate.shut(Reason.DISCONNECTED);
        herald.tell(Event.AWAY, "spanstatsd is still away from " + config.socket + ", spans are refused and counted until it is back");
    }

    private void welcome(Connection c) {
        isAway = hasLeft = false;
        keys.welcome(c.welcome);
        schedule = new Schedule(config.maxAge.toNanos(), c.welcome.interval);
        connects.incrementAndGet();
        daemon = c.welcome.daemon;
        herald.tell(Event.CONNECTED, "connected to " + c.welcome.daemon + " at " + config.socket);
    }

    /** Ends a connection. Where the daemon has died, what it took with it is counted. */
    private void part(Connection c) throws IOException {
        // A daemon that stops in order says bye behind all that it was handed, and one that died says nothing.
        long limit = System.nanoTime() + (isClosing ? 0 : Connection.LIMIT);
        c.awaitEnd(limit);
        c.close();
        daemon = null;
        long died = saidBye ? 0 : c.unconfirmed();
        if (died > 0) {
            reports.unconfirmed(died);
            herald.tell(Event.DIED, "spanstatsd died, and may have taken " + died + " spans with it");
        }
        since = System.nanoTime();
        backoff.reset(since - c.since);
        herald.tell(Event.DISCONNECTED, "disconnected from spanstatsd: " + c.ending.getMessage());
    }

    /** Sends what comes, until the connection ends or the client has said bye. */
    private boolean serve(Connection c) throws IOException {
        send(c);
        while (c.ending == null) {
            shared.looks();
            if (isClosing) {
                return bye(c);
            }
            takeFlushes();
            if (shared.isArmed() && !isDue) {
                isDue = true;
                dueAt = System.nanoTime() + schedule.delay(TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()));
            }
            long left = isDue ? dueAt - System.nanoTime() : NEVER;
            if (!asking.isEmpty() || left <= 0) {
                send(c);
            } else if (outgoing.hasSealed()) {
                outgoing.write(c);
            } else {
                c.select(left);
                c.read();
            }
        }
        return false;
    }

    /** Sends everything that was published before, full or not, and what the daemon is to know and to be asked. */
    private void send(Connection c) throws IOException {
        isDue = false;
        outgoing.sealAll();
        outgoing.write(c);
        ByteBuffer report = reports.next(scratch);
        if (report != null) {
            c.write(report);
            reports.told();
        }
        while (!asking.isEmpty()) {
            if (!asking.peek().isDone()) {
                c.ask(asking.peek(), scratch);
            }
            asking.remove();
        }
        keys.review();
    }

    /** Sends the last of it and waits until the daemon has closed its end. */
    private boolean bye(Connection c) throws IOException {
        send(c);
        c.write(Messages.bye(scratch, "closed"));
        saidBye = true;
        c.shutDown();
        c.awaitEnd(abortAt.get());
        lostNothing &= c.ending.inOrder;
        return true;
    }

    /** Counts what is left as lost. */
    private void giveUp() {
        shared.gate.shut(Reason.CLOSED);
        lostNothing &= outgoing.loseAll(Reason.CLOSED);
        ended.countDown();
        failFlushes();
        try {
            selector.close();
        } catch (IOException e) {
            herald.tell(Event.FAILED, "cannot close the selector: " + e.getMessage());
        }
    }

    private void takeFlushes() {
        synchronized (flushes) {
            asking.addAll(flushes);
            flushes.clear();
        }
    }

    /** Fails what nobody will ask any more. Any thread may, once the sender has ended. */
    private void failFlushes() {
        List<CompletableFuture<Void>> left;
        synchronized (flushes) {
            takeFlushes();
            left = new ArrayList<>(asking);
            asking.clear();
        }
        for (CompletableFuture<Void> f : left) {
            f.completeExceptionally(new FlushException("flush spans: the client is closed"));
        }
    }
}
