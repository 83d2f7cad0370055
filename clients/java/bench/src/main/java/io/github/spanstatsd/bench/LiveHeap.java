package io.github.spanstatsd.bench;

import io.github.spanstatsd.client.Config;
import io.github.spanstatsd.client.SpanstatsClient;
import io.opentelemetry.api.common.Attributes;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.ObjectName;

/**
 * Prints how many bytes of the heap stay alive after a number of keys was counted: the increase of
 * the class histogram, which collects garbage first. A first pass with few keys loads the classes,
 * which a process has only once.
 */
final class LiveHeap {
    private static final Pattern TOTAL = Pattern.compile("(?m)^Total +[0-9]+ +([0-9]+)");

    private LiveHeap() {}

    /** Arguments: the socket of a daemon, or "histogram"; and the number of keys. */
    public static void main(String[] arguments) throws Exception {
        int most = Integer.parseInt(arguments[1]);
        Span[] spans = Span.all(most);
        boolean isHistogram = arguments[0].equals("histogram");
        for (int keys : new int[] {16, most}) { // the first pass loads the classes
            long before = live();
            if (isHistogram) {
                histogram(spans, keys, before);
            } else {
                client(spans, keys, arguments[0], before);
            }
        }
        if (spans[0] == null) {
            throw new AssertionError(); // keeps both alive until here
        }
    }

    private static void client(Span[] spans, int keys, String socket, long before) throws Exception {
        try (SpanstatsClient client = SpanstatsClient.open(Config.builder().socket(socket).build())) {
            for (int round = 0; round < 50; round++) {
                for (int i = 0; i < keys; i++) {
                    Span s = spans[i];
                    client.publish(
                            s.service, s.operation, s.resource, s.type, s.kind, s.root, s.status, s.peers, s.method,
                            s.method == null ? null : s.route, null, null, false, null, 1_000_000, System.currentTimeMillis() * 1_000_000, 0, 1);
                    if (i % Cost.BURST == 0) {
                        Thread.sleep(2);
                    }
                }
            }
            if (keys == spans.length) {
                say(live() - before, client.stats().knownKeys());
            }
        }
    }

    private static void histogram(Span[] spans, int keys, long before) throws Exception {
        Attributes[] built = new Attributes[keys];
        for (int i = 0; i < keys; i++) {
            built[i] = spans[i].attributes();
        }
        try (Histogram histogram = new Histogram()) {
            for (int round = 0; round < 50; round++) {
                for (int i = 0; i < keys; i++) {
                    histogram.durations.record(0.001 * (1 + round), built[i]);
                }
            }
            if (keys == spans.length) {
                say(live() - before, keys);
            }
        }
    }

    private static void say(long added, int keys) {
        long direct = 0;
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            direct += pool.getMemoryUsed();
        }
        System.out.println(added + " " + direct + " " + keys);
    }

    private static long live() throws Exception {
        ObjectName command = new ObjectName("com.sun.management:type=DiagnosticCommand");
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 3; i++) {
            Object said = ManagementFactory.getPlatformMBeanServer().invoke(
                    command, "gcClassHistogram", new Object[] {new String[0]}, new String[] {String[].class.getName()});
            Matcher total = TOTAL.matcher(said.toString());
            if (!total.find()) {
                throw new IllegalStateException("read the class histogram: it has no total");
            }
            least = Math.min(least, Long.parseLong(total.group(1)));
        }
        return least;
    }
}
