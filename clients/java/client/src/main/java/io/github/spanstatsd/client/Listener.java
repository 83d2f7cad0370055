package io.github.spanstatsd.client;

/**
 * Hears what becomes of the connection. The library logs nothing itself, so that it loads no
 * logging framework before its application does.
 *
 * <p>It is called on the client's own thread, which sends nothing meanwhile. Of one kind of event
 * it hears at most one a second, with the number of those that it did not hear; what it throws is ignored.
 */
@FunctionalInterface
public interface Listener {
    /** One sentence for a person. */
    void heard(Event event, String message);
}
