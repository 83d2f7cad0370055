package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * A virtual machine that exits without closing the client: the shutdown hook sends buffered spans.
 */
class ExitTest {
    /**
     * Main method of that virtual machine: publishes, and exits in the way named by the second
     * argument.
     */
    public static void main(String[] arguments) {
        SpanstatsClient c = SpanstatsClient.open(Config.builder().socket(arguments[0]).build());
        Samples.publish(c, 77);
        if (arguments[1].equals("exit")) {
            System.exit(3);
        } else if (arguments[1].equals("closed")) {
            c.close();
        }
    }

    private static int run(String socket, String how) throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process process = new ProcessBuilder(List.of(java.toString(), "-Xshare:auto", "-cp", System.getProperty("java.class.path"),
                ExitTest.class.getName(), socket, how)).inheritIO().start();
        if (!process.waitFor(5, TimeUnit.MINUTES)) {
            process.destroyForcibly();
        }
        return process.waitFor();
    }

    @Test
    void exit_sendsLastSpans() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            assertEquals(0, run(d.socket.toString(), "end of main"));
            assertEquals(77, d.spans());
            assertEquals(3, run(d.socket.toString(), "exit"));
            assertEquals(2 * 77, d.spans());
            assertEquals(0, run(d.socket.toString(), "closed"));
            assertEquals(3 * 77, d.spans());
            d.stop();
            assertEquals(3, d.counts.byes);
        }
    }
}
