import io.github.spanstatsd.client.Config;
import io.github.spanstatsd.client.Labels;
import io.github.spanstatsd.client.Origin;
import io.github.spanstatsd.client.SpanstatsClient;
import io.github.spanstatsd.client.Stats;
import java.io.IOException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;

/** Publishes spans until standard input ends, then closes the client and prints its statistics as JSON. */
public final class Publisher {
    private static final long SLOT_NANOS = 50_000_000;

    private Publisher() {}

    /** Arguments: socket, service, spans per second, maximum number of kept bytes, maxAge and maxBackoff in ms. */
    public static void main(String[] args) throws InterruptedException {
        String service = args[1];
        int rate = Integer.parseInt(args[2]);
        SpanstatsClient client = SpanstatsClient.open(Config.builder().socket(args[0]).name(service)
                .origin(Origin.builder().service(service).env("kills").build())
                .bufferBytes(32 << 20).maxKept(Integer.parseInt(args[3]))
                .maxAge(Duration.ofMillis(Long.parseLong(args[4])))
                .maxBackoff(Duration.ofMillis(Long.parseLong(args[5]))).closeTimeout(Duration.ofMinutes(1))
                .shutdownHook(false).build());
        AtomicBoolean isOver = new AtomicBoolean();
        Thread watcher = new Thread(() -> {
            waitForEnd();
            isOver.set(true);
        });
        watcher.start();
        Map<String, Long> published = new LinkedHashMap<>();
        Labels labels = new Labels();
        long started = System.nanoTime();
        long offered = 0;
        while (!isOver.get()) {
            long since = System.nanoTime() - started;
            String name = "GET /s/" + since / SLOT_NANOS;
            long now = System.currentTimeMillis() * 1_000_000;
            long accepted = 0;
            for (long due = since / 1000 * rate / 1_000_000; offered < due; offered++) {
                labels.clear();
                labels.service(service).operation("http.request").resource(name).type("web").kind("server")
                        .httpStatus(200 + (int) (offered % 3));
                long nanos = 1_000_000 * (1 + offered % 1000);
                if (client.publish(labels, nanos, now, SpanstatsClient.TOP_LEVEL)) {
                    accepted++;
                }
            }
            if (accepted > 0) {
                published.merge(name, accepted, Long::sum);
            }
            Thread.sleep(10);
        }
        client.close();
        Stats stats = client.stats();
        String names = published.entrySet().stream().map(e -> "\"" + e.getKey() + "\":" + e.getValue())
                .collect(Collectors.joining(","));
        long lost = stats.lost() + stats.buffered();
        System.out.println("{\"published\":{" + names + "},\"ambiguous\":" + stats.ambiguous()
                + ",\"died\":" + stats.unconfirmed() + ",\"lost\":" + lost + "}");
        System.exit(0);
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException e) {
            // An error on standard input ends the program as well.
        }
    }
}
