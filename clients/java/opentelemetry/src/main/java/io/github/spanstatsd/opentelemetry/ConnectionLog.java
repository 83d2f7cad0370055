package io.github.spanstatsd.opentelemetry;

import io.github.spanstatsd.client.Event;
import io.github.spanstatsd.client.Listener;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Logs a line when the daemon is first missed, one when it is there again, and what became of spans where one died. */
final class ConnectionLog implements Listener {
    private final Logger log;
    private final AtomicBoolean isMissed = new AtomicBoolean();
    private volatile boolean isEnding;

    ConnectionLog(Logger log) {
        this.log = log;
    }

    /** Says no more: the connection ends because this side ends it. */
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
