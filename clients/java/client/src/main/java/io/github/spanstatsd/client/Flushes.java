package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Flushes that are not requested from the daemon yet. Any thread can add one; the sender takes and
 * requests them.
 */
final class Flushes {
    /** Limit on waiting flushes, so that callers that abandon their futures use bounded memory. */
    static final int MOST = 1024;

    private final Deque<CompletableFuture<Void>> waiting = new ArrayDeque<>(); // guarded by itself
    private final Deque<CompletableFuture<Void>> asking = new ArrayDeque<>(); // owned by the sender until it has ended

    /** Adds a flush, unless too many are waiting. */
    boolean add(CompletableFuture<Void> answer) {
        synchronized (waiting) {
            if (waiting.size() == MOST) {
                waiting.removeIf(CompletableFuture::isDone); // cancelled by their callers
            }
            return waiting.size() < MOST && waiting.add(answer);
        }
    }

    /** Takes the waiting flushes, and reports whether there are any to request. */
    boolean take() {
        synchronized (waiting) {
            asking.addAll(waiting);
            waiting.clear();
        }
        return !asking.isEmpty();
    }

    /** Requests the taken flushes, after all spans written before. */
    void ask(Connection c, ByteBuffer scratch) throws IOException {
        while (!asking.isEmpty()) {
            if (!asking.peek().isDone()) {
                c.ask(asking.peek(), scratch);
            }
            asking.remove();
        }
    }

    /** Fails all remaining flushes. Any thread can call it after the sender has ended. */
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
