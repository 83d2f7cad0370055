package io.github.spanstatsd.opentelemetry;

import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * Readers shared by all threads, each for one span at a time. A thread never waits: it tries the
 * slot derived from its thread ID and the following ones, and creates a temporary reader if all are
 * taken. There is no state per thread, so the number of virtual threads does not matter.
 */
final class SpanReaders {
    /** Number of entries per cache line, so that two processors do not share one. */
    private static final int STRIDE = 16;

    private static final int MOST = 64;

    private final String service;
    private final boolean keepsNames;
    private final Work work = new Work();
    private final JoinedNames joined = new JoinedNames(false);
    private final SpanReader[] readers;
    private final AtomicIntegerArray taken;

    SpanReaders(String service, boolean keepsNames) {
        this.service = service;
        this.keepsNames = keepsNames;
        int places = Math.min(MOST, 2 * Integer.highestOneBit(2 * Runtime.getRuntime().availableProcessors() - 1));
        readers = new SpanReader[places];
        taken = new AtomicIntegerArray(places * STRIDE);
    }

    /** Takes a free slot and returns it, or -1 if all are taken. */
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

    /** Returns the reader of a taken slot, and creates it at its first use. */
    SpanReader at(int place) {
        if (place < 0) {
            return newReader();
        }
        SpanReader reader = readers[place];
        return reader != null ? reader : (readers[place] = newReader());
    }

    private SpanReader newReader() {
        return new SpanReader(service, work, joined, keepsNames);
    }

    /** Returns a slot. Its reader has no reference to a span. */
    void give(int place) {
        if (place >= 0) {
            taken.lazySet(place * STRIDE, 0);
        }
    }
}
