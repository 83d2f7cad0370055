package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.BooleanSupplier;

/** Spans to publish, and checks of the client's accounting. */
final class Samples {
    /** A span whose labels are a list in the order of the key's encoding. */
    static final class Span {
        final List<Object> labels = new ArrayList<>();
        long duration;
        long end;
        int flags;
        double weight = 1;

        String text(int place) {
            return (String) labels.get(place);
        }

        /** Returns the encoded key, made without the library. Trailing empty labels are omitted. */
        byte[] key() {
            List<Object> key = new ArrayList<>();
            for (int i = 0; i < labels.size(); i++) {
                Object label = labels.get(i);
                boolean isSet = label != null && !label.equals("") && !label.equals(0L) && !label.equals(List.of());
                key.add(isSet ? label : i < 3 ? "" : null);
            }
            while (key.size() > 3 && key.get(key.size() - 1) == null) key.remove(key.size() - 1);
            return Msgpack.write(key);
        }

        @SuppressWarnings("unchecked")
        Tags tags(int place) {
            Tags tags = null;
            for (String tag : (List<String>) labels.get(place)) {
                tags = tags == null ? new Tags() : tags;
                int colon = tag.indexOf(':');
                if (tag.length() % 2 == 0) tags.add(tag);
                else tags.add(tag.substring(0, colon), tag.substring(colon + 1));
            }
            return tags;
        }

        TraceRoot root() {
            Object root = labels.get(5);
            return root == null ? TraceRoot.NOT_SET : (Boolean) root ? TraceRoot.TRUE : TraceRoot.FALSE;
        }

        boolean publish(SpanstatsClient c) {
            return c.publish(text(0), text(1), text(2), text(3), text(4), root(), ((Long) labels.get(6)).intValue(), tags(7), text(8),
                    text(9), text(10), text(11), labels.get(12) != null, tags(13), duration, end, flags, weight);
        }

        Labels inLabels() {
            return new Labels().service(text(0)).operation(text(1)).resource(text(2)).type(text(3)).kind(text(4)).traceRoot(root())
                    .httpStatus(((Long) labels.get(6)).intValue()).peerTags(tags(7)).httpMethod(text(8)).httpEndpoint(text(9))
                    .grpcStatus(text(10)).serviceSource(text(11)).synthetics(labels.get(12) != null).additionalTags(tags(13));
        }

        void count(Counts counts) {
            counts.of(key()).add(Math.max(0, duration), end, flags, weight);
            counts.spans++;
        }
    }

    private Samples() {}

    /** Returns a span of a web service with one of 32 resources. */
    static Span sample(int i) {
        Span s = new Span();
        s.labels.addAll(List.of("web-store", "http.request", "GET /api/v1/users/" + i % 32, "web", "server", true, 200L,
                List.of("peer.service:users-db"), "GET", "/api/v1/users/?", "", ""));
        s.labels.add(null);
        s.labels.add(List.of());
        s.duration = 1_000_000 + i * 1000L;
        s.end = 1_700_000_000_000_000_000L + i;
        s.flags = SpanstatsClient.TOP_LEVEL;
        return s;
    }

    static int publish(SpanstatsClient c, int spans) {
        int accepted = 0;
        for (int i = 0; i < spans; i++) accepted += sample(i).publish(c) ? 1 : 0;
        return accepted;
    }

    /** Returns a span of any shape. */
    static Span random(Random r) {
        Span s = sample(r.nextInt(1000));
        switch (r.nextInt(6)) {
            case 0: s.labels.set(2, "unique " + r.nextLong() + "y".repeat(r.nextInt(300))); break;
            case 1:
                s.labels.set(7, List.of("b:11", "a:2"));
                s.labels.set(10, "5");
                s.labels.set(12, true);
                s.labels.set(13, List.of("c:3"));
                break;
            case 2:
                s.labels.set(0, "größe €😀");
                s.labels.set(6, (long) r.nextInt(600));
                s.labels.set(5, r.nextBoolean() ? null : false);
                break;
            case 3:
                for (int i = 3; i < 12; i++) if (i != 5 && i != 6) s.labels.set(i, i == 7 ? List.of() : "");
                s.labels.set(6, 0L);
                s.labels.set(5, null);
                break;
            default:
        }
        s.duration = (r.nextLong() >>> r.nextInt(64)) >> 2;
        s.end = r.nextInt(8) == 0 ? r.nextLong() >> r.nextInt(64) : Math.abs(r.nextLong());
        s.flags = r.nextInt(4);
        s.weight = new double[] {1, 1, 1, 2, 0.5, 3.25}[r.nextInt(6)];
        return s;
    }

    static SpanstatsClient open(FakeDaemon d, java.util.function.Consumer<Config.Builder> change) {
        Config.Builder b = Config.builder().socket(d.socket.toString()).shutdownHook(false).maxBackoff(java.time.Duration.ofMillis(1))
                .closeTimeout(java.time.Duration.ofMinutes(1)).maxAge(java.time.Duration.ofHours(1)).origin(Origin.builder().build());
        change.accept(b);
        return SpanstatsClient.open(b.build());
    }

    /** Checks the accounting while no thread publishes. */
    static void checkBooks(SpanstatsClient c, long offered) {
        Stats s = c.stats();
        assertEquals(offered, s.published() + s.refused(), s::toString);
        assertEquals(s.published(), s.sent() + s.buffered() + s.lost(), s::toString);
        if (s.buffered() < 0) fail(s.toString());
    }

    /** Waits for a condition that other threads bring about. It fails only if something hangs. */
    static void eventually(String what, BooleanSupplier is) throws InterruptedException {
        for (int i = 0; i < 60_000; i++) {
            if (is.getAsBoolean()) return;
            Thread.sleep(1);
        }
        fail("it never came to pass that " + what);
    }
}
