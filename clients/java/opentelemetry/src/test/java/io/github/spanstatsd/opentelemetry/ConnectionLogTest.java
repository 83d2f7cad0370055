package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.spanstatsd.client.Event;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

class ConnectionLogTest {
    private final List<Level> said = new ArrayList<>();
    private final ConnectionLog log = new ConnectionLog(logger());

    private Logger logger() {
        Logger logger = Logger.getAnonymousLogger();
        logger.setUseParentHandlers(false);
        logger.addHandler(new Handler() {
            @Override
            public void publish(LogRecord line) {
                said.add(line.getLevel());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        });
        return logger;
    }

    @Test
    void unreachableDaemon_isLoggedOnce() {
        log.heard(Event.AWAY, "nobody there");
        log.heard(Event.AWAY, "nobody there");
        log.heard(Event.FAILED, "nobody there");
        assertEquals(List.of(Level.WARNING), said);
        log.heard(Event.CONNECTED, "there");
        log.heard(Event.DIED, "gone");
        log.heard(Event.AWAY, "nobody there");
        assertEquals(List.of(Level.WARNING, Level.INFO, Level.WARNING), said);
    }

    /**
     * Other events are logged whether the daemon is reachable or not, and do not change that state.
     */
    @Test
    void outcomes_areLogged() {
        log.heard(Event.DIED, "gone");
        log.heard(Event.CONNECTED, "there");
        log.heard(Event.RECOVERED, "it knows");
        log.heard(Event.CONNECTED, "there");
        log.end();
        log.heard(Event.UNSETTLED, "we left");
        assertEquals(List.of(Level.WARNING, Level.INFO, Level.INFO, Level.INFO), said);
    }

    @Test
    void reachableDaemon_isNotLogged() {
        log.heard(Event.CONNECTED, "there");
        assertEquals(List.of(), said);
        log.end();
        log.heard(Event.DISCONNECTED, "we left");
        assertEquals(List.of(), said);
    }
}
