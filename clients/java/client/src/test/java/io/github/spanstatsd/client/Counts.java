package io.github.spanstatsd.client;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;

/** Counts the spans of one or several connections, in the simplest possible way. */
final class Counts {
    /** The statistics of one key. */
    static final class Tally {
        long spans;
        long errors;
        long topLevel;
        long duration;
        long end;
        double weight;

        void add(long duration, long end, long flags, double weight) {
            spans++;
            this.duration += duration;
            this.end += end;
            this.weight += weight;
            errors += flags & 1;
            topLevel += flags >> 1 & 1;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Tally && toString().equals(other.toString());
        }

        @Override
        public int hashCode() {
            return toString().hashCode();
        }

        @Override
        public String toString() {
            return spans + " spans, " + errors + " errors, " + topLevel + " top-level, " + duration + " ns, end " + end + ", weight " + weight;
        }
    }

    final Map<String, Tally> byKey = new HashMap<>();
    final Map<String, Long> lost = new HashMap<>();
    long spans;
    long numbered;
    int defined;
    int mostInABatch;
    int flushes;
    int byes;
    /** Called for each snapshot, with its key. */
    BiConsumer<String, List<Object>> onSpan = (key, snapshot) -> {};

    /** The key numbers of one connection. */
    static final class Numbers {
        final Map<Long, String> keys = new HashMap<>();
        int most = 1024;
        long mostCost = 128 << 10;

        /** Checks the daemon's limits on keys. */
        private void check() {
            long cost = 0;
            for (String key : keys.values()) cost += (key.length() / 2 + 31) / 32 * 32 + 128;
            if (cost > mostCost) throw new IllegalArgumentException("the keys with numbers cost " + cost);
        }
    }

    Tally of(byte[] key) {
        return byKey.computeIfAbsent(HexFormat.of().formatHex(key), k -> new Tally());
    }

    /** Counts one message and returns its type. */
    @SuppressWarnings("unchecked")
    int take(Numbers numbers, byte[] message) {
        ByteBuffer in = ByteBuffer.wrap(message);
        List<Object> parts = (List<Object>) Msgpack.read(in);
        if (in.hasRemaining() || parts.size() != 2) {
            throw new IllegalArgumentException("a message of " + parts.size() + " parts, and " + in.remaining() + " bytes behind it");
        }
        int type = ((Long) parts.get(0)).intValue();
        switch (type) {
            case 4: define(numbers, (List<List<Object>>) parts.get(1)); break;
            case 5: spans(numbers, (List<List<Object>>) parts.get(1)); break;
            case 6: ((Map<String, Long>) parts.get(1)).forEach((reason, n) -> lost.merge(reason, n, Long::sum)); break;
            case 7: flushes++; break;
            case 8: byes++; break;
            default:
        }
        return type;
    }

    private void define(Numbers numbers, List<List<Object>> definitions) {
        for (List<Object> definition : definitions) {
            long number = (Long) definition.get(0);
            if (number >= numbers.most) {
                throw new IllegalArgumentException("number " + number + " is out of range");
            }
            numbers.keys.put(number, HexFormat.of().formatHex((byte[]) definition.get(1)));
            defined++;
        }
        numbers.check();
    }

    private void spans(Numbers numbers, List<List<Object>> snapshots) {
        mostInABatch = Math.max(mostInABatch, snapshots.size());
        for (List<Object> s : snapshots) {
            String key;
            if (s.get(0) instanceof Long) {
                key = numbers.keys.get(s.get(0));
                numbered++;
                if (key == null) {
                    throw new IllegalArgumentException("number " + s.get(0) + " was never defined");
                }
            } else {
                key = HexFormat.of().formatHex((byte[]) s.get(0));
            }
            double weight = s.size() < 5 ? 1 : ((Number) s.get(4)).doubleValue();
            byKey.computeIfAbsent(key, k -> new Tally()).add((Long) s.get(1), (Long) s.get(2), (Long) s.get(3), weight);
            spans++;
            onSpan.accept(key, s);
        }
    }

    /** Counts the complete frames in bytes that can end anywhere. */
    void replay(Numbers numbers, ByteBuffer bytes) {
        while (bytes.remaining() >= 4 && bytes.remaining() >= 4 + bytes.getInt(bytes.position())) {
            byte[] message = new byte[bytes.getInt()];
            bytes.get(message);
            take(numbers, message);
        }
    }
}
