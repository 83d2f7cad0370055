package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** The thread that owns the connection and sealed buffers. */
final class Sender {
    private final Config config;
    private final Shared shared;
    private final Keys keys;
    private final Outgoing outgoing;
    private final Reports reports;
    private final EventNotifier notifier;
    private final Dialer dialer;
    private final Flushes flushes = new Flushes();
    private final Deadline deadline = new Deadline();
    private final Thread thread = new Thread(null, this::run, "spanstatsd-client", 0, false);
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile boolean lostNothing = true;

    private final AtomicLong connects = new AtomicLong();
    private volatile String daemon;

    private final ByteBuffer scratch = ByteBuffer.allocateDirect(Messages.BYTES);
    private Selector selector;
    private Schedule schedule;
    private boolean isDue; // the timer for the spans in stripes is running; it is while the client is armed
    private long dueAt;
    private boolean saidBye;

    Sender(Config config, Shared shared, Pool pool, Stripe[] stripes, KeyTable table, Consumer<long[]> addRefused) {
        this.config = config;
        this.shared = shared;
        keys = new Keys(config.maxKeys, stripes, table);
        reports = new Reports(addRefused);
        outgoing = new Outgoing(shared, pool, stripes, keys, reports, scratch);
        notifier = new EventNotifier(config.listener);
        dialer = new Dialer(config, shared, outgoing, notifier, deadline, scratch);
        thread.setDaemon(true);
        thread.setContextClassLoader(null); // the creator's class loader might be unloaded
    }

    void start() {
        try {
            selector = Selector.open();
        } catch (IOException e) {
            throw new IllegalStateException("open client: no selector: " + e.getMessage(), e);
        }
        dialer.selectBy(selector);
        shared.wakeBy(selector::wakeup);
        config.origin.whenComplete((known, failure) -> selector.wakeup());
        thread.start();
    }

    CompletableFuture<Void> flush() {
        CompletableFuture<Void> answer = new CompletableFuture<>();
        if (!flushes.add(answer)) {
            answer.completeExceptionally(new FlushException("flush spans: " + Flushes.MOST + " flushes wait for a daemon already"));
            return answer;
        }
        shared.wake();
        if (ended.getCount() == 0) {
            flushes.fail();
        }
        return answer;
    }

    /** Makes the sender end within a time limit, and waits for it. */
    boolean finish(Duration timeout) {
        deadline.set(timeout.toNanos());
        selector.wakeup(); // ends any wait of the sender
        boolean wasInterrupted = false;
        while (true) {
            try {
                ended.await();
                break;
            } catch (InterruptedException e) {
                wasInterrupted = true;
                deadline.set(0);
                selector.wakeup();
            }
        }
        if (wasInterrupted) {
            Thread.currentThread().interrupt();
        }
        return lostNothing;
    }

    void addTo(Stats stats) {
        outgoing.addTo(stats);
        reports.addTo(stats);
        stats.connects = connects.get();
        stats.daemon = daemon;
        stats.knownKeys = keys.count();
    }

    private void run() {
        try {
            boolean isOver = false;
            while (!isOver) {
                Connection connection = dialer.connect();
                if (connection == null) {
                    break;
                }
                welcome(connection);
                try {
                    isOver = serve(connection);
                } catch (IOException e) {
                    // The connection has recorded why it ended. Unsent spans are kept for the next
                    // connection.
                } finally {
                    part(connection);
                }
            }
        } catch (Throwable e) {
            notifier.tell(Event.FAILED, "a defect ended the client, spans are refused and counted: " + e);
        } finally {
            giveUp();
        }
    }

    private void welcome(Connection c) {
        keys.welcome(c.welcome);
        schedule = new Schedule(config.maxAge.toNanos(), c.welcome.interval);
        Outcomes outcomes = outgoing.begin(c);
        connects.incrementAndGet();
        daemon = c.welcome.daemon;
        notifier.tell(Event.CONNECTED, "connected to " + c.welcome.daemon + " at " + dialer.socket());
        if (outcomes != null) {
            notifier.tell(Event.RECOVERED, c.welcome.daemon + " " + outcomes);
        }
    }

    /**
     * Ends a connection. The next daemon is asked for the outcome of spans that this one did not
     * settle.
     */
    private void part(Connection c) throws IOException {
        // A daemon that shuts down gracefully says bye after it has read everything. A killed one
        // says nothing.
        long limit = System.nanoTime() + (deadline.isSet() ? 0 : Connection.LIMIT);
        c.awaitEnd(limit);
        c.close();
        daemon = null;
        boolean died = c.ending.died && !saidBye;
        if (died && c.unsettled() > 0) {
            notifier.tell(Event.DIED, "spanstatsd died, and may have taken " + c.unsettled() + " spans with it");
        }
        if (saidBye && !c.ending.isBye()) {
            outgoing.review(); // the connection is over, so its settlement is final
        } else {
            outgoing.end(c, died, saidBye);
        }
        dialer.onDisconnect(c);
        notifier.tell(Event.DISCONNECTED, "disconnected from spanstatsd: " + c.ending.getMessage());
    }

    /** Sends spans until the connection ends or the client has said bye. */
    private boolean serve(Connection c) throws IOException {
        send(c);
        while (c.ending == null) {
            shared.clearWakeup();
            if (deadline.isSet()) {
                return bye(c);
            }
            boolean isAsked = flushes.take();
            if (shared.isArmed() && !isDue) {
                isDue = true;
                dueAt = System.nanoTime() + schedule.delay(TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()));
            }
            long left = isDue ? dueAt - System.nanoTime() : Deadline.NEVER;
            if (isAsked || left <= 0) {
                send(c);
            } else if (outgoing.hasSealed()) {
                outgoing.write(c);
            } else {
                c.select(left);
                c.read();
                outgoing.review();
            }
        }
        return false;
    }

    /**
     * Sends all spans published before, including partially full buffers, and pending reports and
     * flush requests.
     */
    private void send(Connection c) throws IOException {
        isDue = false;
        outgoing.sealAll();
        outgoing.write(c);
        ByteBuffer report = reports.next(scratch);
        if (report != null) {
            c.write(report);
            reports.markSent();
        }
        flushes.ask(c, scratch);
        keys.review();
    }

    /** Sends the last spans and waits until the daemon has closed its side. */
    private boolean bye(Connection c) throws IOException {
        send(c);
        settle(c);
        c.write(Messages.bye(scratch, "closed"));
        saidBye = true;
        c.shutDown();
        c.awaitEnd(System.nanoTime() + Deadline.NEVER);
        lostNothing &= c.ending.inOrder;
        return true;
    }

    /**
     * Requests a flush and waits for the daemon's response, or until nine tenths of the time are
     * over; the rest is for closing the connection. The daemon reports settled spans before it
     * responds. If it crashes meanwhile, the next daemon is asked about the spans.
     */
    private void settle(Connection c) throws IOException {
        if (!outgoing.isKept() || c.unsettled() == 0) {
            return;
        }
        CompletableFuture<Void> report = new CompletableFuture<>();
        c.ask(report, scratch);
        long share = deadline.left() / 10;
        while (c.ending == null && c.unsettled() > 0 && !report.isDone() && deadline.left() > share) {
            c.select(deadline.left() - share);
            c.read();
        }
        outgoing.review();
    }

    /** Counts all remaining spans as lost. */
    private void giveUp() {
        shared.gate.shut(Reason.CLOSED);
        if (outgoing.isKept() && outgoing.unsettled() > 0) {
            notifier.tell(Event.UNSETTLED, "closed before a daemon has said what became of " + outgoing.unsettled() + " spans that were handed over");
        }
        lostNothing &= outgoing.loseAll(Reason.CLOSED);
        ended.countDown();
        flushes.fail();
        try {
            selector.close();
        } catch (IOException e) {
            notifier.tell(Event.FAILED, "cannot close the selector: " + e.getMessage());
        }
    }
}
