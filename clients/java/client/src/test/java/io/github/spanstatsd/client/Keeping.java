package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * A client and daemons that know their predecessors. Spans are identified by their end times, which
 * are consecutive.
 */
abstract class Keeping {
    long next; // the end time of the next span, which identifies it

    static FakeDaemon daemon() throws Exception {
        FakeDaemon d = new FakeDaemon();
        d.settles = d.remembers = true;
        return d.start();
    }

    static SpanstatsClient open(FakeDaemon d, Consumer<Config.Builder> change) {
        return Samples.open(d, b -> change.accept(b.maxAge(Duration.ofMillis(1))));
    }

    /** Publishes spans with consecutive end times. */
    void publish(SpanstatsClient c, int spans) {
        for (int i = 0; i < spans; i++) {
            Samples.Span s = Samples.sample(i);
            s.end = next++;
            assertTrue(s.publish(c), c.stats()::toString);
        }
    }

    /** Publishes spans in separate messages, and waits until the daemon has received them. */
    void handOver(FakeDaemon d, SpanstatsClient c, int... messages) throws Exception {
        for (int spans : messages) {
            publish(c, spans);
            long before = next;
            Samples.eventually("the daemon has them", () -> {
                synchronized (d) {
                    return d.last().ends.contains(before - 1) && c.stats().buffered() == 0;
                }
            });
        }
    }

    static void restart(FakeDaemon d, SpanstatsClient c) throws Exception {
        long connects = c.stats().connects();
        d.kill();
        d.start();
        Samples.eventually("the client is back", () -> c.stats().connects() > connects);
    }

    static List<Long> ends(long... bounds) {
        List<Long> ends = new ArrayList<>();
        for (int i = 0; i < bounds.length; i += 2) {
            for (long end = bounds[i]; end < bounds[i + 1]; end++) ends.add(end);
        }
        return ends;
    }

    static List<Object> asked(FakeDaemon d) {
        synchronized (d) {
            List<Object> asked = new ArrayList<>();
            for (Map<?, ?> hello : d.hellos) asked.add(hello.get("earlier"));
            return asked;
        }
    }
}
