package io.github.spanstatsd.bench;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** Runs the benchmarks. The argument is the daemon's program. QUICK=1 shortens all measurements. */
public final class Bench {
    private static final int[] KEYS = {64, 4096};
    private static final int[] THREADS = {1, 2};
    private static final String[] JVM = {"-XX:+UseG1GC", "-Xms256m", "-Xmx256m"};

    /**
     * Promised maximum cost of one thread with a daemon, in ns per span by the number of keys, and
     * of the heap in MiB.
     */
    private static final double[] MOST_NANOS = {60, 120};
    private static final double[] MOST_MIB = {0.1, 1};

    /** A row of the table: a benchmark, and the state of the daemon. */
    private enum Way {
        LABELS("by labels", PublishBenchmark.class, "labels", true),
        ENCODED("by encoded keys", PublishBenchmark.class, "encoded", true),
        LABELS_AWAY("by labels, the daemon away", PublishBenchmark.class, "labels", false),
        ENCODED_AWAY("by encoded keys, the daemon away", PublishBenchmark.class, "encoded", false),
        BUILT("OpenTelemetry's histogram, attributes built before", HistogramBenchmark.class, "built", true),
        EACH_BUILT("OpenTelemetry's histogram, attributes built for each span", HistogramBenchmark.class, "eachBuilt", true);

        final String name;
        final Class<?> of;
        final String method;
        final boolean daemon;

        Way(String name, Class<?> of, String method, boolean daemon) {
            this.name = name;
            this.of = of;
            this.method = method;
            this.daemon = daemon;
        }
    }

    /** Result of one run. */
    private record Shown(double nanos, double bytes, double refused) {
        @Override
        public String toString() {
            String said = String.format(Locale.ROOT, "%.0f ns, %.2f B", nanos, bytes);
            return refused < 0.0005 ? said : said + String.format(Locale.ROOT, ", %.1f %% refused", 100 * refused);
        }
    }

    /** Live memory on the heap and outside of it. */
    private record Live(long heap, long direct, int keys) {}

    private final StandIn standIn;
    private final boolean quick;
    private final List<String> missed = new ArrayList<>();

    private Bench(StandIn standIn, boolean quick) {
        this.standIn = standIn;
        this.quick = quick;
    }

    public static void main(String[] arguments) throws Exception {
        try (StandIn standIn = new StandIn(arguments[0])) {
            Bench bench = new Bench(standIn, System.getenv("QUICK") != null && !System.getenv("QUICK").isEmpty());
            String said = bench.times();
            said += bench.heaps();
            System.out.println(said + (bench.missed.isEmpty() ? "; all aims are met" : "; missed: " + String.join(", ", bench.missed)));
        }
    }

    private String times() throws RunnerException {
        System.out.println("| CPU ns and B of the heap a span | 64 keys, one thread | 64 keys, two | 4,096 keys, one thread | 4,096 keys, two |");
        System.out.println("| --- | --- | --- | --- | --- |");
        StringBuilder words = new StringBuilder("publishing by labels");
        for (Way way : Way.values()) {
            StringBuilder row = new StringBuilder("| " + way.name + " |");
            for (int k = 0; k < KEYS.length; k++) {
                for (int threads : THREADS) {
                    Shown shown = run(way, KEYS[k], threads);
                    row.append(' ').append(shown).append(" |");
                    if (threads == 1 && way.of == PublishBenchmark.class && way.daemon) {
                        hold(way, k, shown);
                    }
                    if (threads == 1 && way == Way.LABELS) {
                        words.append(k == 0 ? " takes " : " and ").append(shown).append(" with ").append(KEYS[k]).append(" keys");
                    }
                }
            }
            System.out.println(row);
        }
        System.out.println();
        return words.toString();
    }

    private void hold(Way way, int k, Shown shown) {
        if (shown.nanos > MOST_NANOS[k]) {
            missed.add(String.format(Locale.ROOT, "%.0f ns %s with %d keys (aim %.0f)", shown.nanos, way.name, KEYS[k], MOST_NANOS[k]));
        }
        if (shown.bytes >= 0.5) {
            missed.add(String.format(Locale.ROOT, "%.2f B %s with %d keys (aim 0)", shown.bytes, way.name, KEYS[k]));
        }
    }

    private Shown run(Way way, int keys, int threads) throws RunnerException {
        var options = new OptionsBuilder().include("^" + way.of.getName() + "\\." + way.method + "$")
                .param("keys", String.valueOf(keys)).threads(threads).forks(1).jvmArgs(JVM).addProfiler(GCProfiler.class)
                .warmupIterations(quick ? 1 : 3).warmupTime(TimeValue.seconds(1))
                .measurementIterations(quick ? 1 : 5).measurementTime(TimeValue.seconds(1))
                .verbosity(VerboseMode.SILENT).shouldFailOnError(true);
        if (way.of == PublishBenchmark.class) {
            options.param("socket", way.daemon ? standIn.socket : standIn.nowhere());
        }
        RunResult result = new Runner(options.build()).run().iterator().next();
        var more = result.getSecondaryResults();
        double spans = score(more.get("spans"));
        return new Shown(score(more.get("nanos")) / spans, score(more.get("gc.alloc.rate.norm")), score(more.get("refused")) / spans);
    }

    private static double score(Result<?> of) {
        return of.getScore();
    }

    private String heaps() throws IOException, InterruptedException {
        System.out.println("| MiB live on the heap, and beside it | 64 keys | 4,096 keys |");
        System.out.println("| --- | --- | --- |");
        StringBuilder words = new StringBuilder();
        for (String what : new String[] {standIn.socket, "histogram"}) {
            boolean isOurs = what.equals(standIn.socket);
            StringBuilder row = new StringBuilder(isOurs ? "| the client |" : "| OpenTelemetry's histogram |");
            for (int k = 0; k < KEYS.length; k++) {
                Live live = live(what, KEYS[k]);
                row.append(String.format(Locale.ROOT, " %s, %s |", mib(live.heap), mib(live.direct)));
                if (isOurs) {
                    hold(k, live);
                    words.append(k == 0 ? ", and adds " : " and ").append(mib(live.heap));
                }
            }
            System.out.println(row);
        }
        System.out.println();
        return words + " MiB to the live heap";
    }

    private void hold(int k, Live live) {
        if (live.heap > MOST_MIB[k] * (1 << 20) || live.keys < KEYS[k]) {
            missed.add(mib(live.heap) + " MiB of live heap, " + live.keys + " keys known (aim " + MOST_MIB[k] + " MiB, " + KEYS[k] + ")");
        }
    }

    private static String mib(long bytes) {
        return String.format(Locale.ROOT, "%.2f", bytes / (double) (1 << 20));
    }

    private static Live live(String what, int keys) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java"));
        command.addAll(List.of(JVM));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), LiveHeap.class.getName(), what, String.valueOf(keys)));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String[] said = new String(process.getInputStream().readAllBytes(), StandardCharsets.US_ASCII).trim().split(" ");
        if (process.waitFor() != 0) {
            throw new IOException("measure live heap of " + what + ": it ended with " + process.exitValue());
        }
        return new Live(Long.parseLong(said[0]), Long.parseLong(said[1]), Integer.parseInt(said[2]));
    }
}
