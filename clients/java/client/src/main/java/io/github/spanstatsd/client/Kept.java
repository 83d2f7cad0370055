package io.github.spanstatsd.client;

import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What was handed over on a connection and is not settled, the oldest first. Where the daemon dies the next one is asked what became
 * of it, and says which of it is to be handed over again. What was written before it was full is copied behind what was written
 * before it, so that a buffer of the pool holds as much as it can. It is the sender's.
 */
final class Kept {
    private final Pool pool;
    private final ArrayDeque<Buffer> buffers = new ArrayDeque<>();
    private final AtomicLong unsettled = new AtomicLong();
    private Connection of;
    private long first; // spans of the connection that lie before the first buffer
    private boolean isAsking; // the connection has ended, and the next daemon is to say what became of them

    Kept(Pool pool) {
        this.pool = pool;
    }

    /** Begins with a connection, of which nothing was handed over. */
    void begin(Connection c) {
        of = c;
        first = 0;
        isAsking = false;
        review();
    }

    /** How many spans were handed over and are not settled, as far as a daemon says. Any thread may ask. */
    long unsettled() {
        return unsettled.get();
    }

    /** Whether a daemon that follows could say what became of them. */
    boolean isOn() {
        return of != null && of.welcome.settled && !of.welcome.token.isEmpty();
    }

    boolean isAsking() {
        return isAsking;
    }

    /** What the hello says, so that the daemon knows which connection is meant; empty where there is nothing to ask. */
    String earlier() {
        return isAsking ? of.welcome.token : "";
    }

    /** Keeps a buffer that was handed over whole, or gives its memory back where what it holds was copied, or need not be kept. */
    void add(Buffer written) {
        review();
        Buffer last = buffers.peekLast();
        if (!isOn()) {
            pool.give(written);
        } else if (last != null && last.takes(written)) {
            last.append(written);
            pool.give(written);
        } else {
            buffers.add(written);
            while (!buffers.isEmpty() && !pool.spares(buffers.size())) {
                letGoFirst();
            }
        }
    }

    /** Looks at what is settled, which need not be kept. */
    void review() {
        while (!buffers.isEmpty() && first + buffers.peek().handed <= of.settled()) {
            letGoFirst();
        }
        unsettled.lazySet(of.unsettled());
    }

    private void letGoFirst() {
        first += buffers.peek().handed;
        pool.give(buffers.poll());
    }

    /** The daemon has died or left. Of the buffer that was being written, which may be null, a part was handed over. */
    void ask(Buffer cut) {
        if (cut != null) {
            buffers.add(cut);
        }
        isAsking = true;
        unsettled.lazySet(of.unsettled());
    }

    /**
     * Ends the asking, before the next connection begins: puts what is to be handed over again, and what was not handed over, in front of a list.
     * A daemon that knows nothing of one that said bye says that it ended in order.
     */
    Outcomes resolve(List<Long> said, List<Buffer> pending) {
        boolean isDelivered = said.isEmpty() && of.ending.isBye();
        Outcomes told = new Outcomes(said, isDelivered ? Long.MAX_VALUE : of.settled());
        told.miss(0, first);
        int to = 0;
        for (Buffer buffer = buffers.poll(); buffer != null; buffer = buffers.poll()) {
            int handed = buffer.handed;
            buffer.sift(first, told);
            first += handed;
            if (buffer.spans > 0) {
                pending.add(to++, buffer);
            } else {
                pool.give(buffer);
            }
        }
        return told;
    }

    /** Nobody will be asked any more: adds what was not handed over to a list. */
    void forgo(List<Buffer> pending) {
        for (Buffer buffer = buffers.poll(); buffer != null; buffer = buffers.poll()) {
            if (buffer.spans > 0) {
                pending.add(buffer);
            }
        }
    }

    /** Lets all go: nobody can be asked, or this side has left. */
    void letGo() {
        while (!buffers.isEmpty()) {
            letGoFirst();
        }
        unsettled.lazySet(0);
    }
}
