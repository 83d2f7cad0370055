package io.github.spanstatsd.client;

/** Why a span is not counted. Each reason has its own counter. */
public enum Reason {
    /** No buffer was free, or every stripe was in use. */
    BUFFER_FULL("buffer_full"),
    /** The daemon was unreachable for longer than {@link Config.Builder#maxAway}. */
    DISCONNECTED("disconnected"),
    /** Its key has a number over the limit of the current daemon, which is lower than before. */
    TOO_LARGE("too_large"),
    /** The daemon's agent does not accept statistics. */
    NOT_WANTED("not_wanted"),
    /** It was published after close, or was not sent before the end of close. */
    CLOSED("closed");

    private final String label;

    Reason(String label) {
        this.label = label;
    }

    /** Returns the name of the reason in the protocol and in the daemon's metrics. */
    public String label() {
        return label;
    }
}
