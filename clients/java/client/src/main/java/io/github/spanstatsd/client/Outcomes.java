package io.github.spanstatsd.client;

import java.util.List;

/**
 * What a daemon says became of the spans of a connection that an earlier one died with, in the pairs of the protocol, and how many
 * were gone through of each kind. Spans are counted from the first of that connection on, so a number is a place between two.
 */
final class Outcomes {
    private enum What { SETTLED, DOUBTFUL, AGAIN, UNKNOWN }

    /** A destination may have them. */
    long ambiguous;
    /** No destination has them, and they are handed over again. */
    long again;
    /** Nobody has them, or nobody knows. */
    long lost;

    private final List<Long> pairs;
    private final long settled;

    /** Takes what the daemon says, which is nothing where it does not know the connection, and how many spans the earlier one has settled itself. */
    Outcomes(List<Long> pairs, long settled) {
        this.pairs = pairs;
        this.settled = settled;
    }

    /** Counts the spans of one message, and says whether it is to be handed over again. */
    boolean isAgain(long from, long to) {
        What what = what(to);
        if (what == What.AGAIN) {
            again += to - from;
        } else {
            count(what, to - from);
        }
        return what == What.AGAIN;
    }

    /** Counts spans that can't be handed over again, whatever became of them. */
    void miss(long from, long to) {
        for (long at = Math.max(from, settled); at < to;) {
            long end = Math.min(to, end(at));
            count(what(end), end - at);
            at = end;
        }
    }

    /** Whether anything was handed over again, or may not have arrived. */
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

    /** What became of the spans before a place, back to the bound before it. */
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

    /** The next bound behind a place. */
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
