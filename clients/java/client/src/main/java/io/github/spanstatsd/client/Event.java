package io.github.spanstatsd.client;

/** Kinds of events for a {@link Listener}. */
public enum Event {
    /** A daemon has accepted this client. */
    CONNECTED,
    /** A connection has ended. The message contains the reason. */
    DISCONNECTED,
    /**
     * No daemon is reachable. Spans are buffered, and refused after {@link Config.Builder#maxAway}.
     */
    AWAY,
    /** A daemon crashed. Spans might be lost. */
    DIED,
    /** The next daemon has reported the outcome of those spans. */
    RECOVERED,
    /** A client was closed before the daemon reported the outcome of all sent spans. */
    UNSETTLED,
    /** An internal error of this library, which it has handled. */
    FAILED
}
