package io.github.spanstatsd.client;

import java.util.List;

/**
 * Outcomes of the spans of a connection whose daemon crashed, as reported by the next daemon in the
 * protocol's pairs, and the number of spans processed so far by outcome. Spans are numbered from
 * the start of that connection; a bound is a number of spans before it.
 */
final class Outcomes {
    private enum What { SETTLED, DOUBTFUL, AGAIN, UNKNOWN }

    /** Spans that a destination might have received. */
    long ambiguous;
    /** Spans that no destination has received, and that are replayed. */
    long again;
    /** Spans that are lost, or whose outcome is unknown. */
    long lost;

    private final List<Long> pairs;
    private final long settled;

    /**
     * Takes the daemon's pairs, which are empty if it does not know the connection, and the number
     * of spans that the earlier daemon settled.
     */
    Outcomes(List<Long> pairs, long settled) {
        this.pairs = pairs;
        this.settled = settled;
    }

    /** Counts the spans of one message, and reports whether to replay it. */
    boolean isAgain(long from, long to) {
        What what = what(to);
        if (what == What.AGAIN) {
            again += to - from;
        } else {
            count(what, to - from);
        }
        return what == What.AGAIN;
    }

    /** Counts spans that are not kept, so that they cannot be replayed. */
    void miss(long from, long to) {
        for (long at = Math.max(from, settled); at < to;) {
            long end = Math.min(to, end(at));
            count(what(end), end - at);
            at = end;
        }
    }

    /** Reports whether any span was replayed, or might not have been delivered. */
    boolean isWorthTelling() {
        return again + ambiguous + lost > 0;
    }

    private void count(What what, long spans) {
        if (what == What.DOUBTFUL) {
            ambiguous += spans;
        } else if (what != What.SETTLED) {
            lost += spans;
        }
    }

    /** Returns the outcome of the spans that end at a position, back to the previous bound. */
    private What what(long upTo) {
        if (upTo <= settled) {
            return What.SETTLED;
        }
        if (pairs.isEmpty()) {
            return What.UNKNOWN;
        }
        for (int i = 0; i + 1 < pairs.size(); i += 2) {
            if (upTo <= pairs.get(i)) {
                long what = pairs.get(i + 1);
                return what == 0 ? What.SETTLED : what == 1 ? What.DOUBTFUL : What.AGAIN;
            }
        }
        return What.AGAIN;
    }

    /** Returns the next bound after a position. */
    private long end(long at) {
        for (int i = 0; i + 1 < pairs.size(); i += 2) {
            if (pairs.get(i) > at) {
                return pairs.get(i);
            }
        }
        return Long.MAX_VALUE;
    }

    @Override
    public String toString() {
        return (pairs.isEmpty() ? "does not know" : "knows") + " what became of the spans that the daemon before it had: "
                + again + " are handed over again, " + ambiguous + " may have arrived, " + lost + " may be lost";
    }
}
