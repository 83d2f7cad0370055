package io.github.spanstatsd.client;

import java.util.List;

/**
 * Outcomes of the spans of a connection whose daemon crashed, as reported by the next daemon in the
 * protocol's pairs, and the number of spans processed so far by outcome. Spans are numbered from
 * the start of that connection; a bound is a number of spans before it.
 */
final class Outcomes {
    private enum Outcome { SETTLED, IN_DOUBT, UNDELIVERED, UNKNOWN }

    /** Spans that a destination might have received. */
    long ambiguous;
    /** Spans that no destination has received, and that are replayed. */
    long replayed;
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
    boolean countReplayable(long from, long to) {
        Outcome outcome = outcomeAt(to);
        if (outcome == Outcome.UNDELIVERED) {
            replayed += to - from;
        } else {
            count(outcome, to - from);
        }
        return outcome == Outcome.UNDELIVERED;
    }

    /** Counts spans that are not kept, so that they cannot be replayed. */
    void countMissed(long from, long to) {
        for (long at = Math.max(from, settled); at < to;) {
            long end = Math.min(to, end(at));
            count(outcomeAt(end), end - at);
            at = end;
        }
    }

    /** Reports whether any span was replayed, or might not have been delivered. */
    boolean isWorthTelling() {
        return replayed + ambiguous + lost > 0;
    }

    private void count(Outcome outcome, long spans) {
        if (outcome == Outcome.IN_DOUBT) {
            ambiguous += spans;
        } else if (outcome != Outcome.SETTLED) {
            lost += spans;
        }
    }

    /** Returns the outcome of the spans that end at a position, back to the previous bound. */
    private Outcome outcomeAt(long upTo) {
        if (upTo <= settled) {
            return Outcome.SETTLED;
        }
        if (pairs.isEmpty()) {
            return Outcome.UNKNOWN;
        }
        for (int i = 0; i + 1 < pairs.size(); i += 2) {
            if (upTo <= pairs.get(i)) {
                long code = pairs.get(i + 1);
                return code == 0 ? Outcome.SETTLED : code == 1 ? Outcome.IN_DOUBT : Outcome.UNDELIVERED;
            }
        }
        return Outcome.UNDELIVERED;
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
                + replayed + " are handed over again, " + ambiguous + " may have arrived, " + lost + " may be lost";
    }
}
