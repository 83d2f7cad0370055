package io.github.spanstatsd.client;

/**
 * What a client has done since it was opened, in spans. At any moment
 *
 * <pre>
 * offered   = published + refused
 * published = sent + buffered + lost
 * </pre>
 *
 * where offered is what publish was called with.
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

    /** Accepted by publish. */
    public long published() {
        return published;
    }

    /** Of which the socket took every byte. What is to be handed over again, because a daemon died, is buffered until that is done. */
    public long sent() {
        return sent;
    }

    /** Accepted, and neither sent nor lost yet. */
    public long buffered() {
        return published - sent - lost();
    }

    /** Not accepted by publish, for one reason. */
    public long refused(Reason reason) {
        return refused[reason.ordinal()];
    }

    /** Not accepted by publish. */
    public long refused() {
        return sum(refused);
    }

    /** Accepted, and lost for one reason. */
    public long lost(Reason reason) {
        return lost[reason.ordinal()];
    }

    /** Accepted, and lost. */
    public long lost() {
        return sum(lost);
    }

    /**
     * Of those sent, those whose outcome a daemon has not said yet. After close it is what close could not see settled. Of a
     * daemon that never says it is 0.
     */
    public long unsettled() {
        return unsettled;
    }

    /**
     * Of those sent, handed over to daemons that died, not settled and not kept any more, or nobody knows whether they are: so many
     * at most are lost. The daemon is told, as {@code daemon_died}.
     */
    public long unconfirmed() {
        return unconfirmed;
    }

    /** Of those sent, handed over to daemons that died while they reported them: a destination may have them. */
    public long ambiguous() {
        return ambiguous;
    }

    /** How often a daemon has welcomed this client. */
    public long connects() {
        return connects;
    }

    public boolean connected() {
        return daemon != null;
    }

    /** What the daemon calls itself, empty while there is none. */
    public String daemon() {
        return daemon == null ? "" : daemon;
    }

    /** Keys that are known and sent as numbers. */
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
