package io.github.spanstatsd.client;

/** Why a span is not counted. Each has a count of its own, from 0 on. */
public enum Reason {
    /** No buffer was free, or every stripe was being written to. */
    BUFFER_FULL("buffer_full"),
    /** The daemon was away for longer than {@link Config.Builder#maxAway}. */
    DISCONNECTED("disconnected"),
    /** Its keys have more numbers than the daemon takes, which took more before. */
    TOO_LARGE("too_large"),
    /** The agent behind the daemon takes no statistics. */
    NOT_WANTED("not_wanted"),
    /** It came after close, or could not be sent by the end of it. */
    CLOSED("closed");

    private final String label;

    Reason(String label) {
        this.label = label;
    }

    /** The word by which the daemon is told, and by which its metrics name it. */
    public String label() {
        return label;
    }
}
