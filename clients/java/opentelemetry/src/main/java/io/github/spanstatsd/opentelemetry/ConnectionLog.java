package io.github.spanstatsd.opentelemetry;

import io.github.spanstatsd.client.Event;
import io.github.spanstatsd.client.Listener;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Logs one line when the daemon becomes unreachable, one when it is reachable again, and the
 * outcome of spans after a crash.
 */
final class ConnectionLog implements Listener {
    private final Logger log;
    private final AtomicBoolean isMissed = new AtomicBoolean();
    private volatile boolean isEnding;

    ConnectionLog(Logger log) {
        this.log = log;
    }

    /** Ends logging, because this side closes the connection. */
    void end() {
        isEnding = true;
    }

    @Override
    public void heard(Event event, String message) {
        if (event == Event.RECOVERED || event == Event.UNSETTLED) {
            log.log(Level.INFO, "spanstatsd: {0}", message);
            return;
        }
        boolean isThere = event == Event.CONNECTED;
        boolean isNews = isMissed.getAndSet(!isThere) == isThere && !isEnding;
        log.log(!isNews ? Level.FINE : isThere ? Level.INFO : Level.WARNING, "spanstatsd: {0}", message);
    }
}
