package io.github.spanstatsd.bench;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A daemon, and a mock agent that accepts everything, as in a healthy pod. */
final class StandIn implements AutoCloseable {
    private static final String INFO = "{\"version\":\"7.85.1\",\"endpoints\":[\"/v0.6/stats\"],\"client_drop_p0s\":true,"
            + "\"span_kinds_stats_computed\":[\"server\",\"client\",\"producer\",\"consumer\"],"
            + "\"peer_tags\":[\"db.name\",\"db.system\",\"peer.hostname\"],\"obfuscation_version\":1}";

    private final Path directory;
    private final HttpServer agent;
    private final Process daemon;
    final String socket;

    StandIn(String program) throws IOException, InterruptedException {
        directory = Files.createTempDirectory("bench");
        socket = directory.resolve("spans.sock").toString();
        agent = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        agent.createContext("/info", exchange -> answer(exchange, INFO));
        agent.createContext("/", exchange -> answer(exchange, "{}"));
        agent.start();
        daemon = new ProcessBuilder(program, "run", "--socket", socket, "--agent-url", "http://127.0.0.1:" + agent.getAddress().getPort(),
                "--http-addr", "127.0.0.1:0").redirectErrorStream(true).redirectOutput(directory.resolve("daemon.log").toFile()).start();
        Runtime.getRuntime().addShutdownHook(new Thread(daemon::destroy));
        while (!Files.exists(Path.of(socket))) {
            if (!daemon.isAlive()) {
                throw new IOException("start daemon: it ended: " + Files.readString(directory.resolve("daemon.log")));
            }
            Thread.sleep(20);
        }
    }

    /** Returns the path of a socket without a listener. */
    String nowhere() {
        return directory.resolve("nobody.sock").toString();
    }

    private static void answer(HttpExchange exchange, String text) throws IOException {
        exchange.getRequestBody().readAllBytes();
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    @Override
    public void close() throws InterruptedException, IOException {
        daemon.destroy();
        daemon.waitFor();
        agent.stop(0);
        Files.deleteIfExists(directory.resolve("daemon.log"));
        Files.deleteIfExists(Path.of(socket));
        try (var rest = Files.list(directory)) {
            for (Path file : (Iterable<Path>) rest::iterator) {
                Files.deleteIfExists(file);
            }
        }
        Files.delete(directory);
    }
}
