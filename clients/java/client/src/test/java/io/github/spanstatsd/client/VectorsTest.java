package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/**
 * The golden vectors of the protocol: the library writes the same bytes, and reads the daemon's
 * messages.
 */
class VectorsTest {
    private static final List<JsonObject> VECTORS = read();

    private static List<JsonObject> read() {
        try {
            String text = Files.readString(Path.of(System.getProperty("spanstatsd.vectors")));
            List<JsonObject> vectors = new ArrayList<>();
            new Gson().fromJson(text, JsonArray.class).forEach(v -> vectors.add(v.getAsJsonObject()));
            return vectors;
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static byte[] frame(JsonObject vector) {
        return HexFormat.of().parseHex(vector.get("frame").getAsString());
    }

    private static String string(JsonObject o, String name) {
        return o.has(name) ? o.get(name).getAsString() : "";
    }

    /** For each type of client message: the canonical vectors, byte for byte. */
    @Test
    void clientMessages_areCanonical() {
        ByteBuffer b = ByteBuffer.allocate(Messages.BYTES);
        int written = 0;
        for (JsonObject v : VECTORS) {
            if (!v.has("canonical") || !v.has("type")) continue;
            JsonObject m = v.get("meaning").isJsonObject() ? v.getAsJsonObject("meaning") : null;
            ByteBuffer frame;
            switch (v.get("type").getAsString()) {
                case "hello":
                    if (m.get("version").getAsLong() != 1) continue;
                    frame = hello(b, m);
                    break;
                case "lost": frame = lost(b, m.has("lost") ? m.getAsJsonObject("lost") : m); break;
                case "bye":
                    if (!string(v, "name").equals("bye")) continue; // sent by a daemon
                    frame = Messages.bye(b, string(m, "reason"));
                    break;
                case "flush":
                    if (!string(v, "name").equals("flush_request")) continue; // sent by a daemon
                    frame = Messages.flush(b, m.get("id").getAsLong());
                    break;
                default: continue;
            }
            byte[] bytes = new byte[frame.remaining()];
            frame.get(bytes);
            assertEquals(v.get("frame").getAsString(), HexFormat.of().formatHex(bytes), string(v, "name"));
            written++;
        }
        assertTrue(written >= 9, "only " + written + " vectors were written");
    }

    private static ByteBuffer hello(ByteBuffer b, JsonObject m) {
        Origin.Builder o = Origin.builder();
        for (Map.Entry<String, JsonElement> field : m.getAsJsonObject("origin").entrySet()) {
            String value = field.getValue().getAsString();
            switch (field.getKey()) {
                case "host": o.host(value); break;
                case "env": o.env(value); break;
                case "version": o.version(value); break;
                case "service": o.service(value); break;
                case "lang": o.lang(value); break;
                case "lang_version": o.langVersion(value); break;
                case "lang_interpreter": o.langInterpreter(value); break;
                case "tracer_version": o.tracerVersion(value); break;
                case "runtime_id": o.runtimeId(value); break;
                case "container_id": o.containerId(value); break;
                case "entity_id": o.entityId(value); break;
                case "external_env": o.externalEnv(value); break;
                case "process_tags": o.processTags(value); break;
                case "git_commit_sha": o.gitCommitSha(value); break;
                case "obfuscation_version": o.obfuscationVersion(value); break;
                default: throw new AssertionError("an origin's field that the library does not know: " + field.getKey());
            }
        }
        return Messages.hello(b, string(m, "client"), o.build(), m.has("settled"), string(m, "earlier"));
    }

    private static ByteBuffer lost(ByteBuffer b, JsonObject m) {
        String[] names = m.keySet().stream().sorted().toArray(String[]::new);
        long[] counts = new long[names.length];
        for (int i = 0; i < names.length; i++) counts[i] = m.get(names[i]).getAsLong();
        return Messages.lost(b, names, counts);
    }

    /**
     * Each canonical batch, byte for byte, except those with values that this library never sends.
     */
    @Test
    void batches_areCanonical() {
        Buffer buffer = new Buffer(0, ByteBuffer.allocateDirect(Buffer.BYTES));
        int written = 0;
        for (JsonObject v : VECTORS) {
            if (!v.has("canonical") || !v.get("type").getAsString().equals("spans")) continue;
            buffer.empty(null);
            JsonArray snapshots = v.getAsJsonObject("meaning").getAsJsonArray("snapshots");
            boolean isOurs = snapshots.size() > 0;
            for (JsonElement s : snapshots) isOurs = isOurs && put(buffer, s.getAsJsonObject());
            if (!isOurs) continue;
            buffer.seal();
            byte[] bytes = new byte[buffer.bytes().remaining()];
            buffer.bytes().get(bytes);
            assertEquals(v.get("frame").getAsString(), HexFormat.of().formatHex(bytes), string(v, "name"));
            written++;
        }
        assertTrue(written >= 29, "only " + written + " batches were written");
    }

    /**
     * Returns false if the library would truncate the key or never use the number, or if Java
     * cannot represent the duration.
     */
    private static boolean put(Buffer buffer, JsonObject s) {
        String duration = s.get("duration").getAsString();
        if (duration.length() > 18) return false;
        long nanos = Long.parseLong(duration);
        long end = Long.parseLong(s.get("end").getAsString());
        int flags = (s.get("error").getAsBoolean() ? 1 : 0) | (s.get("top_level").getAsBoolean() ? 2 : 0);
        double weight = s.get("weight").getAsDouble();
        if (s.has("number")) {
            if (s.get("number").getAsLong() > 65535) return false;
            buffer.numbered(EncodedKey.of(new Labels()).labels.numbered(s.get("number").getAsInt()), nanos, end, flags, weight);
            return true;
        }
        JsonObject key = s.getAsJsonObject("key");
        if (string(key, "resource").length() > 5000 || key.has("peer_tags") && key.getAsJsonArray("peer_tags").size() > 64) return false;
        EncodedKey encoded = EncodedKey.of(labels(key));
        int from = buffer.beginWhole(weight);
        buffer.memory().duplicate().position(from).put(encoded.bytes);
        buffer.endWhole(from, from + encoded.bytes.length, nanos, end, flags, weight);
        return true;
    }

    @Test
    void definitions_areCanonical() {
        JsonObject v = VECTORS.stream().filter(vector -> string(vector, "name").equals("define")).findFirst().orElseThrow();
        JsonObject key = v.getAsJsonObject("meaning").getAsJsonArray("definitions").get(0).getAsJsonObject().getAsJsonObject("key");
        EncodedKey encoded = EncodedKey.of(labels(key));
        KeyTable table = new KeyTable(16);
        table.learn(encoded.bytes.length, encoded.labels);
        ByteBuffer frame = Messages.define(ByteBuffer.allocate(Messages.BYTES), table, 0, 1);
        byte[] bytes = new byte[frame.remaining()];
        frame.get(bytes);
        assertEquals(v.get("frame").getAsString(), HexFormat.of().formatHex(bytes));
    }

    private static Labels labels(JsonObject key) {
        Labels l = new Labels();
        for (Map.Entry<String, JsonElement> label : key.entrySet()) {
            JsonElement value = label.getValue();
            switch (label.getKey()) {
                case "service": l.service(value.getAsString()); break;
                case "operation": l.operation(value.getAsString()); break;
                case "resource": l.resource(value.getAsString()); break;
                case "type": l.type(value.getAsString()); break;
                case "kind": l.kind(value.getAsString()); break;
                case "trace_root": l.traceRoot(value.getAsBoolean() ? TraceRoot.TRUE : TraceRoot.FALSE); break;
                case "http_status": l.httpStatus((int) value.getAsLong()); break;
                case "http_method": l.httpMethod(value.getAsString()); break;
                case "http_endpoint": l.httpEndpoint(value.getAsString()); break;
                case "grpc_status": l.grpcStatus(value.getAsString()); break;
                case "service_source": l.serviceSource(value.getAsString()); break;
                case "synthetics": l.synthetics(value.getAsBoolean()); break;
                case "peer_tags": value.getAsJsonArray().forEach(t -> l.peerTag(t.getAsString())); break;
                case "additional_tags": value.getAsJsonArray().forEach(t -> l.additionalTag(t.getAsString())); break;
                default: throw new AssertionError("a label that the library does not know: " + label.getKey());
            }
        }
        return l;
    }

    private static Object decode(byte[] frame) throws IOException {
        Unpack in = new Unpack(frame, 4, frame.length);
        switch (in.type()) {
            case 2: return Welcome.read(in);
            case 3: return Welcome.Announcement.read(in);
            case 7: return DaemonMessages.Answer.read(in);
            case 8: return DaemonMessages.Bye.read(in);
            default: return null;
        }
    }

    /** The daemon's messages are parsed to their expected values. */
    @Test
    void daemonMessages_areParsed() throws IOException {
        int read = 0;
        for (JsonObject v : VECTORS) {
            if (!v.has("type") || !v.get("meaning").isJsonObject()) continue;
            Object decoded = decode(frame(v));
            if (decoded == null) continue;
            String name = string(v, "name");
            JsonObject m = v.getAsJsonObject("meaning");
            if (decoded instanceof Welcome) {
                compare(name, m, (Welcome) decoded);
            } else if (decoded instanceof Welcome.Announcement) {
                Welcome.Announcement a = (Welcome.Announcement) decoded;
                compare(name, m, a.features());
                assertEquals(m.has("settled") ? m.get("settled").getAsLong() : 0, a.settled, name);
            } else if (decoded instanceof DaemonMessages.Answer) {
                DaemonMessages.Answer a = (DaemonMessages.Answer) decoded;
                assertEquals(m.get("id").getAsLong(), a.id, name);
                assertEquals(m.has("ok") && m.get("ok").getAsBoolean(), a.ok, name);
                assertEquals(string(m, "error"), a.error, name);
            } else {
                DaemonMessages.Bye b = (DaemonMessages.Bye) decoded;
                assertEquals(string(m, "reason"), b.reason, name);
                assertEquals(string(m, "detail"), b.detail, name);
                assertEquals(m.has("versions") ? m.getAsJsonArray("versions").size() : 0, b.versions.size(), name);
            }
            read++;
        }
        assertTrue(read >= 12, "only " + read + " vectors were read");
    }

    private static void compare(String name, JsonObject m, Welcome w) {
        assertEquals(m.get("version").getAsLong(), w.version, name);
        assertEquals(string(m, "daemon"), w.daemon, name);
        assertEquals(m.get("max_frame").getAsLong(), w.maxFrame, name);
        assertEquals(m.get("max_batch").getAsLong(), w.maxBatch, name);
        assertEquals(m.get("max_keys").getAsLong(), w.maxKeys, name);
        long keyBytes = m.has("max_key_bytes") ? m.get("max_key_bytes").getAsLong() : 0;
        assertEquals(keyBytes == 0 ? 65536 : keyBytes, w.maxKeyBytes, name);
        assertEquals(m.has("settled") && m.get("settled").getAsBoolean(), w.settled, name);
        assertEquals(m.has("interval") ? m.get("interval").getAsLong() : 0, w.interval, name);
        assertEquals(string(m, "token"), w.token, name);
        List<Long> earlier = new ArrayList<>();
        if (m.has("earlier")) m.getAsJsonArray("earlier").forEach(n -> earlier.add(n.getAsLong()));
        assertEquals(earlier, w.earlier, name);
        compare(name, m.getAsJsonObject("features"), w.features);
    }

    private static void compare(String name, JsonObject m, Features f) {
        assertEquals(m.has("stats") && m.get("stats").getAsBoolean(), f.stats(), name);
        assertEquals(list(m, "peer_tags"), f.peerTags(), name);
        assertEquals(list(m, "span_kinds"), f.spanKinds(), name);
        assertEquals(list(m, "ignore_resources"), f.ignoreResources(), name);
        assertEquals(m.has("obfuscation_version") ? m.get("obfuscation_version").getAsLong() : 0, f.obfuscationVersion(), name);
    }

    private static List<String> list(JsonObject m, String name) {
        List<String> list = new ArrayList<>();
        if (m.has(name) && m.get(name).isJsonArray()) m.getAsJsonArray(name).forEach(e -> list.add(e.getAsString()));
        return list;
    }

    /** Invalid messages are rejected, and so is every proper prefix of a valid message. */
    @Test
    void malformedMessages_areRejected() {
        int refused = 0;
        for (JsonObject v : VECTORS) {
            byte[] frame = frame(v);
            int type = frame.length > 5 && (frame[4] & 0xff) == 0x92 ? frame[5] : 0;
            boolean isHeader = string(v, "name").matches("malformed_(not_an|array|no_body|type|after).*");
            if (v.has("malformed") && (isHeader || type == 2 || type == 3 || type == 7 || type == 8)) {
                assertThrows(IOException.class, () -> decode(frame), string(v, "name"));
                refused++;
            } else if (type == 2 || type == 3 || type == 8) {
                for (int end = 4; end < frame.length; end++) {
                    byte[] cut = java.util.Arrays.copyOf(frame, end);
                    assertThrows(IOException.class, () -> decode(cut), () -> string(v, "name") + " cut at " + cut.length);
                }
            }
        }
        assertTrue(refused >= 15, "only " + refused + " vectors were refused");
    }

    /** A decoder parses or rejects any bytes: each byte of each vector is changed. */
    @Test
    void changedBytes_areParsedOrRejected() {
        for (JsonObject v : VECTORS) {
            byte[] frame = frame(v);
            for (int i = 4; i < Math.min(frame.length, 400); i++) {
                for (int flip : new int[] {1, 0x80, 0xff}) {
                    byte[] changed = frame.clone();
                    changed[i] ^= (byte) flip;
                    try {
                        decode(changed);
                    } catch (IOException e) {
                        // Rejected.
                    }
                }
            }
        }
    }

    /** Bytes that are not UTF-8 are replaced. */
    @Test
    void invalidUtf8_isReplaced() throws IOException {
        byte[] body = new String("\u0092\u0008\u0081\u00a6reason\u00a2\u00ff\u00fe").getBytes(StandardCharsets.ISO_8859_1);
        Unpack in = new Unpack(body, 0, body.length);
        assertEquals(8, in.type());
        assertEquals("\ufffd\ufffd", DaemonMessages.Bye.read(in).reason);
    }
}
