package io.github.spanstatsd.client;

/**
 * Numbers of spans that a client has processed since it was opened. At any time
 *
 * <pre>
 * offered   = published + refused
 * published = sent + buffered + lost
 * </pre>
 *
 * where offered is the number of spans passed to publish.
 */
public final class Stats {
    final long[] refused = new long[Reason.values().length];
    final long[] lost = new long[Reason.values().length];
    long published;
    long sent;
    long unsettled;
    long unconfirmed;
    long ambiguous;
    long connects;
    String daemon;
    int knownKeys;

    Stats() {}

    /** Returns the number of spans accepted by publish. */
    public long published() {
        return published;
    }

    /**
     * Returns the number of published spans that the socket accepted completely. Spans to be
     * replayed after a crash of the daemon count as buffered until they are sent.
     */
    public long sent() {
        return sent;
    }

    /** Returns the number of accepted spans that are neither sent nor lost yet. */
    public long buffered() {
        return published - sent - lost();
    }

    /** Returns the number of spans refused by publish for one reason. */
    public long refused(Reason reason) {
        return refused[reason.ordinal()];
    }

    /** Returns the number of spans refused by publish. */
    public long refused() {
        return sum(refused);
    }

    /** Returns the number of accepted spans lost for one reason. */
    public long lost(Reason reason) {
        return lost[reason.ordinal()];
    }

    /** Returns the number of accepted spans that were lost. */
    public long lost() {
        return sum(lost);
    }

    /**
     * Returns the number of sent spans that are not settled yet. After close, these are the spans
     * whose outcome is unknown. It is 0 if the daemon does not report settlement.
     */
    public long unsettled() {
        return unsettled;
    }

    /**
     * Returns the number of sent spans that crashed daemons had not settled, and that are no longer
     * kept or whose outcome is unknown. At most this number is lost. It is reported to the daemon
     * as {@code daemon_died}.
     */
    public long unconfirmed() {
        return unconfirmed;
    }

    /**
     * Returns the number of sent spans that crashed daemons were exporting: a destination might
     * have received them.
     */
    public long ambiguous() {
        return ambiguous;
    }

    /** Returns the number of successful connections. */
    public long connects() {
        return connects;
    }

    public boolean connected() {
        return daemon != null;
    }

    /** Returns the daemon's name and version; empty while there is no connection. */
    public String daemon() {
        return daemon == null ? "" : daemon;
    }

    /** Returns the number of learned keys, which are sent as numbers. */
    public int knownKeys() {
        return knownKeys;
    }

    private static long sum(long[] counts) {
        long sum = 0;
        for (long count : counts) {
            sum += count;
        }
        return sum;
    }

    @Override
    public String toString() {
        StringBuilder s = new StringBuilder().append("published ").append(published).append(", sent ").append(sent)
                .append(", buffered ").append(buffered()).append(", unsettled ").append(unsettled)
                .append(", unconfirmed ").append(unconfirmed).append(", ambiguous ").append(ambiguous)
                .append(", connects ").append(connects).append(", daemon \"").append(daemon()).append('"')
                .append(", known keys ").append(knownKeys);
        for (Reason reason : Reason.values()) {
            s.append(", ").append(reason.label()).append(' ').append(refused(reason)).append('+').append(lost(reason));
        }
        return s.toString();
    }
}
