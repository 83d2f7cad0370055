package io.github.spanstatsd.opentelemetry;

import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * Readers that any thread may take for one span. Nobody waits for one: a thread tries the place that
 * its number says and those behind it, and where all are taken makes one for itself. There is nothing a
 * thread, so a million virtual ones cost no more than the processors that run them.
 */
final class SpanReaders {
    /** Numbers that lie in one cache line, so that two processors do not meet in it. */
    private static final int STRIDE = 16;

    private static final int MOST = 64;

    private final String service;
    private final Work work = new Work();
    private final SpanReader[] readers;
    private final AtomicIntegerArray taken;

    SpanReaders(String service) {
        this.service = service;
        int places = Math.min(MOST, 2 * Integer.highestOneBit(2 * Runtime.getRuntime().availableProcessors() - 1));
        readers = new SpanReader[places];
        taken = new AtomicIntegerArray(places * STRIDE);
    }

    /** The place of a reader that nobody has, -1 where all are taken. */
    int take() {
        int first = (int) Thread.currentThread().getId();
        for (int i = 0; i < readers.length; i++) {
            int place = first + i & readers.length - 1;
            if (taken.get(place * STRIDE) == 0 && taken.compareAndSet(place * STRIDE, 0, 1)) {
                return place;
            }
        }
        return -1;
    }

    /** The reader of a place that was taken, which is made when it is first taken. */
    SpanReader at(int place) {
        if (place < 0) {
            return new SpanReader(service, work);
        }
        SpanReader reader = readers[place];
        return reader != null ? reader : (readers[place] = new SpanReader(service, work));
    }

    /** Gives a reader back that has let go of its span. */
    void give(int place) {
        if (place >= 0) {
            taken.lazySet(place * STRIDE, 0);
        }
    }
}
