package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/**
 * The client with the built daemon, named by SPANSTATSD_BIN, and the spanstatsd-lab next to it: the
 * daemon counts exactly the spans that the client has sent.
 */
@EnabledIfEnvironmentVariable(named = "SPANSTATSD_BIN", matches = ".+")
class DaemonTest {
    private static final String PROGRAM = System.getenv("SPANSTATSD_BIN");
    private final Path directory = directory();
    private final Path socket = directory.resolve("s");

    private static Path directory() {
        try {
            return Files.createTempDirectory("spanstatsd");
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private SpanstatsClient open(Duration maxAge) {
        return SpanstatsClient.open(Config.builder().socket(socket.toString()).maxBackoff(Duration.ofMillis(20)).maxAge(maxAge)
                .closeTimeout(Duration.ofMinutes(2)).shutdownHook(false).build());
    }

    private Process start(Path output, String... arguments) throws Exception {
        return startProgram(output, PROGRAM, arguments);
    }

    private Process startProgram(Path output, String program, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(program));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(output.toFile()));
        builder.environment().keySet().removeIf(name -> name.startsWith("SPANSTATSD_")); // the program would read each of them as a flag
        Process process = builder.start();
        Samples.eventually("it listens", () -> Files.exists(socket) || !process.isAlive());
        assertTrue(process.isAlive(), () -> read(output));
        return process;
    }

    /** check-client finds nothing malformed, dropped, or in another than the canonical form. */
    @Test
    void checkClient_findsNothing() throws Exception {
        Path output = directory.resolve("check.txt");
        Process check = startProgram(output, PROGRAM + "-lab", "check-client", "--connections", "1", "--json", "--quiet", "--socket", socket.toString());
        SpanstatsClient c = open(Duration.ofMillis(1));
        c.flush().get();
        Random r = new Random(10);
        long now = System.currentTimeMillis() * 1_000_000;
        List<Samples.Span> spans = new ArrayList<>();
        for (int i = 0; i < 2000; i++) spans.add(Samples.random(r));
        for (int i = 0; i < 20_000; i++) {
            Samples.Span s = spans.get(r.nextInt(spans.size()));
            s.end = now;
            assertTrue(s.publish(c));
        }
        assertTrue(c.close(Duration.ofMinutes(2)));
        assertEquals(0, check.waitFor(), Files.readString(output));
        String report = Files.readString(output);
        String end = report.lines().filter(l -> l.contains("\"event\":\"end\"")).findFirst().orElseThrow();
        assertTrue(end.contains("\"spans\":20000"), end);
        assertTrue(end.contains("\"well\":true"), end);
        assertTrue(!report.contains("another form"), report);
    }

    /** The daemon is shut down gracefully several times under load: every sent span is counted. */
    @Test
    void gracefulShutdown_countsEverySentSpan() throws Exception {
        try (Daemon daemon = new Daemon()) {
            daemon.start();
            SpanstatsClient c = open(Duration.ofMillis(1));
            AtomicLong offered = new AtomicLong();
            AtomicBoolean isOver = new AtomicBoolean();
            List<Thread> threads = publishers(c, offered, isOver);
            long received = 0;
            for (int i = 0; i < 4; i++) {
                long connects = i + 1;
                Samples.eventually("it is connected", () -> c.stats().connects() >= connects);
                long before = c.stats().sent();
                Samples.eventually("it sends", () -> c.stats().sent() > before + 5000);
                if (i == 3) break;
                received += daemon.stop();
                daemon.start();
            }
            isOver.set(true);
            for (Thread thread : threads) thread.join();
            assertTrue(c.close(Duration.ofMinutes(2)));
            received += daemon.stop();
            Samples.checkBooks(c, offered.get());
            Stats s = c.stats();
            assertEquals(s.sent(), received, s::toString);
            assertEquals(0, s.unconfirmed(), s::toString);
            assertTrue(s.connects() >= 4, s::toString);
        }
    }

    /**
     * The daemon is killed: spans that it might have lost are reported to the next one, and spans
     * not handed over are sent to that.
     */
    @Test
    void killedDaemon_lossesAreReportedToNext() throws Exception {
        try (Daemon daemon = new Daemon()) {
            daemon.start();
            SpanstatsClient c = open(Duration.ofMillis(1));
            assertEquals(1000, Samples.publish(c, 1000));
            c.flush().get(); // these are settled
            assertEquals(500, Samples.publish(c, 500));
            Samples.eventually("they are sent", () -> c.stats().sent() == 1500);
            daemon.kill();
            Samples.eventually("it is noticed", () -> !c.stats().connected());
            assertEquals(300, Samples.publish(c, 300));
            daemon.start();
            c.flush().get();
            Stats s = c.stats();
            long unconfirmed = s.unconfirmed();
            assertTrue(unconfirmed + s.ambiguous() <= 500, s::toString); // fewer if an interval ended in between
            c.flush().get();
            if (unconfirmed > 0) {
                assertEquals(unconfirmed, daemon.metric("spanstatsd_client_lost_spans_total{reason=\"daemon_died\"}"));
            }
            double received = daemon.metric("spanstatsd_spans_received_total"); // including replayed spans
            assertTrue(received >= 300 && received + unconfirmed + s.ambiguous() <= 800, received + " were received, " + s);
            assertTrue(c.close(Duration.ofMinutes(2)));
            Samples.checkBooks(c, 1800);
        }
    }

    private static List<Thread> publishers(SpanstatsClient c, AtomicLong offered, AtomicBoolean isOver) {
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 3; t++) {
            Random r = new Random(t);
            Thread thread = new Thread(() -> {
                List<Samples.Span> spans = new ArrayList<>();
                for (int i = 0; i < 3000; i++) spans.add(Samples.random(r));
                while (!isOver.get()) {
                    for (int i = 0; i < 200; i++) {
                        Samples.Span s = spans.get(r.nextInt(spans.size()));
                        s.end = System.currentTimeMillis() * 1_000_000;
                        s.publish(c);
                        offered.incrementAndGet();
                    }
                    Thread.yield();
                }
            });
            thread.start();
            threads.add(thread);
        }
        return threads;
    }

    /** A daemon with a mock agent that accepts everything. */
    private final class Daemon implements AutoCloseable {
        private final HttpServer agent = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        private final Path log = directory.resolve("log.txt");
        private Process process;
        private int port;

        Daemon() throws IOException {
            agent.createContext("/", exchange -> {
                exchange.getRequestBody().readAllBytes();
                byte[] body = (exchange.getRequestURI().getPath().equals("/info")
                        ? "{\"version\":\"7.60.0\",\"endpoints\":[\"/v0.6/stats\"],\"client_drop_p0s\":true}" : "{}").getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
                exchange.close();
            });
            agent.start();
        }

        void start() throws Exception {
            Files.deleteIfExists(socket);
            try (ServerSocket free = new ServerSocket(0, 0, InetAddress.getLoopbackAddress())) {
                port = free.getLocalPort();
            }
            process = DaemonTest.this.start(log, "run", "--socket", socket.toString(), "--http-addr", "127.0.0.1:" + port,
                    "--agent-url", "http://127.0.0.1:" + agent.getAddress().getPort(), "--log-format", "json");
        }

        /**
         * Shuts the daemon down gracefully, and returns the number of received spans from its last
         * log line.
         */
        long stop() throws Exception {
            int before = lines();
            process.destroy(); // SIGTERM
            assertEquals(0, process.waitFor(), () -> read(log));
            List<String> report = Files.readAllLines(log).subList(before, lines());
            for (String line : report) {
                int at = line.indexOf("\"received\":");
                if (at >= 0) return Long.parseLong(line.substring(at + 11).split("[^0-9]")[0]);
            }
            throw new AssertionError("the daemon does not say what it received: " + report);
        }

        private int lines() throws IOException {
            return Files.readAllLines(log).size();
        }

        void kill() throws Exception {
            process.destroyForcibly();
            process.waitFor();
        }

        long metric(String name) throws Exception {
            HttpResponse<String> metrics = HttpClient.newHttpClient().send(
                    HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/metrics")).build(), HttpResponse.BodyHandlers.ofString());
            return metrics.body().lines().filter(l -> l.startsWith(name + " ")).mapToLong(l -> (long) Double.parseDouble(l.substring(name.length() + 1)))
                    .findFirst().orElseThrow(() -> new AssertionError("no " + name + " in " + metrics.body()));
        }

        @Override
        public void close() throws Exception {
            if (process != null) kill();
            agent.stop(0);
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            return e.toString();
        }
    }
}
