package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The flushes that wait to be asked. Any thread adds one, the sender takes and asks them. */
final class Flushes {
    /** How many wait, so that callers who never come back for the answer take bounded memory. */
    static final int MOST = 1024;

    private final Deque<CompletableFuture<Void>> waiting = new ArrayDeque<>(); // guarded by itself
    private final Deque<CompletableFuture<Void>> asking = new ArrayDeque<>(); // the sender's, until it has ended

    /** Adds one, unless too many wait. */
    boolean add(CompletableFuture<Void> answer) {
        synchronized (waiting) {
            if (waiting.size() == MOST) {
                waiting.removeIf(CompletableFuture::isDone); // their callers have let go of them
            }
            return waiting.size() < MOST && waiting.add(answer);
        }
    }

    /** Takes those that wait, and says whether there is any to be asked. */
    boolean take() {
        synchronized (waiting) {
            asking.addAll(waiting);
            waiting.clear();
        }
        return !asking.isEmpty();
    }

    /** Asks those that were taken, behind all that was written. */
    void ask(Connection c, ByteBuffer scratch) throws IOException {
        while (!asking.isEmpty()) {
            if (!asking.peek().isDone()) {
                c.ask(asking.peek(), scratch);
            }
            asking.remove();
        }
    }

    /** Fails what nobody will ask any more. Any thread may, once the sender has ended. */
    void fail() {
        List<CompletableFuture<Void>> left;
        synchronized (waiting) {
            take();
            left = new ArrayList<>(asking);
            asking.clear();
        }
        for (CompletableFuture<Void> f : left) {
            f.completeExceptionally(new FlushException("flush spans: the client is closed"));
        }
    }
}
