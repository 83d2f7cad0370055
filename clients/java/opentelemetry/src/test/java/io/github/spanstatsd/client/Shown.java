package io.github.spanstatsd.client;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Shows labels and origins to tests, by the names of docs/protocol.md. Empty fields are omitted.
 */
public final class Shown {
    private Shown() {}

    /** Returns a copy of labels. Numbers are doubles, as in a JSON file. */
    public static Map<String, Object> labels(Labels labels) {
        Map<String, Object> all = new TreeMap<>();
        all.put("service", labels.service);
        all.put("operation", labels.operation);
        all.put("resource", labels.resource);
        all.put("type", labels.type);
        all.put("kind", labels.kind);
        all.put("http_method", labels.httpMethod);
        all.put("http_endpoint", labels.httpEndpoint);
        all.put("grpc_status", labels.grpcStatus);
        all.values().removeIf(value -> value == null || value.equals(""));
        if (labels.traceRoot != TraceRoot.NOT_SET) {
            all.put("trace_root", labels.traceRoot == TraceRoot.TRUE);
        }
        if (labels.httpStatus != 0) {
            all.put("http_status", (double) labels.httpStatus);
        }
        put(all, "peer_tags", labels.peerTags);
        put(all, "additional_tags", labels.additionalTags);
        return all;
    }

    private static void put(Map<String, Object> all, String name, Tags tags) {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < 2 * tags.size(); i += 2) {
            texts.add(tags.part(i + 1) == null ? tags.part(i) : tags.part(i) + ":" + tags.part(i + 1));
        }
        if (!texts.isEmpty()) {
            all.put(name, texts);
        }
    }

    /** Returns the fields of an origin. */
    public static Map<String, String> origin(Origin origin) {
        return origin.fields();
    }
}
