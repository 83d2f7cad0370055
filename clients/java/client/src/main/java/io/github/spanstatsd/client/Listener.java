package io.github.spanstatsd.client;

/**
 * Receives connection events. The library has no logger, so that it does not load a logging
 * framework before the application does.
 *
 * <p>The client calls it on its own thread, which sends nothing during the call. It receives at
 * most one event of each kind per second, with the number of suppressed ones. Exceptions are
 * ignored.
 */
@FunctionalInterface
public interface Listener {
    /** Receives an event, with a human-readable sentence. */
    void heard(Event event, String message);
}
