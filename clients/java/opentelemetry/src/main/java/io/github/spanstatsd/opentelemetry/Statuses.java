package io.github.spanstatsd.opentelemetry;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** Derives HTTP and gRPC status codes from a span. */
final class Statuses {
    private static final String PREFIX = "StatusCode.";

    /** gRPC codes as text, by number and by name. */
    private static final Map<String, String> CODES = new HashMap<>();

    private static final String[] NUMBERS = new String[17];

    static {
        String[] names = {
            "OK", "CANCELLED CANCELED", "UNKNOWN", "INVALID_ARGUMENT INVALIDARGUMENT", "DEADLINE_EXCEEDED DEADLINEEXCEEDED",
            "NOT_FOUND NOTFOUND", "ALREADY_EXISTS ALREADYEXISTS", "PERMISSION_DENIED PERMISSIONDENIED",
            "RESOURCE_EXHAUSTED RESOURCEEXHAUSTED", "FAILED_PRECONDITION FAILEDPRECONDITION", "ABORTED",
            "OUT_OF_RANGE OUTOFRANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS DATALOSS", "UNAUTHENTICATED",
        };
        for (int code = 0; code < names.length; code++) {
            NUMBERS[code] = Integer.toString(code);
            for (String name : names[code].split(" ")) {
                CODES.put(name, NUMBERS[code]);
            }
        }
    }

    private Statuses() {}

    /** Returns the HTTP status, or 0 if there is none or it does not fit into an int. */
    static int http(SpanValues values) {
        Object value = values.of(Attribute.HTTP_STATUS, Attribute.OLD_HTTP_STATUS);
        if (value instanceof Long) {
            long code = (long) value;
            return code >= 0 && code <= Integer.MAX_VALUE ? (int) code : 0;
        }
        return value == null || value instanceof Boolean ? 0 : Numbers.status(SpanValues.textOf(value));
    }

    /**
     * Returns the gRPC status, or an empty string. The current attribute name is also used by other
     * RPC systems.
     */
    static String grpc(SpanValues values) {
        Object value = values.of(Attribute.GRPC_STATUS);
        if (value == null && callsGrpc(values)) {
            value = values.of(Attribute.RPC_STATUS);
        }
        if (value instanceof Long && (long) value >= 0 && (long) value < NUMBERS.length) {
            return NUMBERS[(int) (long) value];
        }
        return value == null ? "" : code(SpanValues.textOf(value));
    }

    private static boolean callsGrpc(SpanValues values) {
        String present = values.text(Attribute.RPC_SYSTEM);
        return present.equals("grpc") || present.isEmpty() && values.text(Attribute.OLD_RPC_SYSTEM).equals("grpc");
    }

    /**
     * Returns the digits of a code given as a number, as a name, or as a name after {@link
     * #PREFIX}.
     */
    private static String code(String text) {
        String digits = Numbers.digits(text);
        if (!digits.isEmpty()) {
            return digits;
        }
        String name = text.startsWith(PREFIX) ? text.substring(PREFIX.length()) : text;
        return CODES.getOrDefault(name.toUpperCase(Locale.ROOT), "");
    }
}
