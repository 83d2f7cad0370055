package io.github.spanstatsd.client;

/** What a {@link Listener} hears of. */
public enum Event {
    /** A daemon has welcomed this client. */
    CONNECTED,
    /** A connection has ended, and why. */
    DISCONNECTED,
    /** No daemon can be reached: spans are buffered, and after {@link Config.Builder#maxAway} refused. */
    AWAY,
    /** A daemon died and may have taken spans with it. */
    DIED,
    /** The daemon that came after it has said what became of those spans. */
    RECOVERED,
    /** A client was closed before a daemon has said what became of all that it was handed. */
    UNSETTLED,
    /** A defect of this library, contained. */
    FAILED
}
