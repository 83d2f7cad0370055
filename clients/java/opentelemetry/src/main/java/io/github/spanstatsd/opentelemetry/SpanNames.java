package io.github.spanstatsd.opentelemetry;

import io.opentelemetry.api.trace.SpanKind;
import java.nio.charset.StandardCharsets;

/**
 * Derives the name under which a span is counted, and the route that only its name contains, by
 * OpenTelemetry's semantic conventions, as the daemon does for OTLP (internal/rules/otel/names.go).
 * It is used by one thread at a time.
 */
final class SpanNames {
    /** The daemon reads the same variable. */
    static final String VARIABLE = "SPANSTATSD_SPAN_NAMES";

    private static final String AWS = "aws-api";
    private static final String UNKNOWN_METHOD = "_OTHER";
    private static final String[] METHODS = {
        "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "QUERY",
    };

    private final SpanValues values;
    private final JoinedNames joined;
    private final boolean areKept;
    private String route = "";

    // The derived name consists of these parts. The first one is empty if the span keeps its name.
    private String first = "";
    private String separator = "";
    private String last = "";

    /** Creates an object for spans with the given values. If areKept, names are not derived. */
    SpanNames(SpanValues values, JoinedNames joined, boolean areKept) {
        this.values = values;
        this.joined = joined;
        this.areKept = areKept;
    }

    /**
     * Reports whether a value of {@link #VARIABLE}, which can be null, keeps the names of spans as
     * they are sent.
     *
     * @throws IllegalArgumentException if the value is invalid
     */
    static boolean areKept(String value) {
        if (value == null || value.isEmpty() || value.equals("convention")) {
            return false;
        }
        if (value.equals("as-sent")) {
            return true;
        }
        throw new IllegalArgumentException(VARIABLE + " is \"" + value + "\"; set it to convention or as-sent");
    }

    /** Returns the name of the span that the values were read from. */
    String name(String sent, SpanKind kind) {
        route = "";
        if (areKept) {
            return sent;
        }
        set("", "", "");
        derive(sent, kind);
        if (first.isEmpty() || isJoined(sent)) {
            return sent;
        }
        return last.isEmpty() ? first : joined.join(joined.join(first, separator), last);
    }

    /** Returns the route in the name of the same span, or an empty string. */
    String route() {
        return route;
    }

    /** Removes all references to the span. */
    void clear() {
        route = "";
        set("", "", "");
    }

    private void set(String first, String separator, String last) {
        this.first = first;
        this.separator = separator;
        this.last = last;
    }

    private void setTarget(String operation, String target) {
        boolean isPair = !operation.isEmpty() && !target.isEmpty();
        set(operation, isPair ? " " : "", isPair ? target : "");
    }

    private boolean isJoined(String name) {
        return name.length() == first.length() + separator.length() + last.length()
                && name.startsWith(first)
                && name.startsWith(separator, first.length())
                && name.endsWith(last);
    }

    /** Sets the parts by the first rule that applies to the span. */
    private void derive(String sent, SpanKind kind) {
        if (has(Attribute.MCP_METHOD)) {
            setTarget(values.text(Attribute.MCP_METHOD), firstText(Attribute.GEN_AI_TOOL, Attribute.GEN_AI_PROMPT));
        } else if (has(Attribute.GEN_AI_OPERATION)) {
            deriveGenAi();
        } else if (has(Attribute.MESSAGING_OPERATION) || has(Attribute.MESSAGING_OPERATION_TYPE) || has(Attribute.OLD_MESSAGING_OPERATION)) {
            deriveMessaging();
        } else if (has(Attribute.RPC_METHOD)) {
            deriveRpc();
        } else if (kind != SpanKind.SERVER && isDatabase()) {
            deriveDatabase(sent);
        } else if (kind == SpanKind.SERVER && isHttp()) {
            deriveServer(sent);
        } else if (kind == SpanKind.CLIENT && isHttp()) {
            String method = method();
            String template = values.text(Attribute.URL_TEMPLATE);
            setTarget(method, template.isEmpty() ? routeIn(sent, method, false) : template);
        }
    }

    private boolean isDatabase() {
        return has(Attribute.DB_SYSTEM) || has(Attribute.OLD_DB_SYSTEM) || has(Attribute.DB_OPERATION) || has(Attribute.OLD_DB_OPERATION)
                || has(Attribute.DB_SUMMARY);
    }

    private boolean isHttp() {
        return has(Attribute.HTTP_METHOD) || has(Attribute.OLD_HTTP_METHOD);
    }

    private void deriveGenAi() {
        String operation = values.text(Attribute.GEN_AI_OPERATION);
        Attribute target = Attribute.GEN_AI_MODEL;
        switch (operation) {
            case "execute_tool":
                target = Attribute.GEN_AI_TOOL;
                break;
            case "create_agent":
            case "invoke_agent":
                target = Attribute.GEN_AI_AGENT;
                break;
            case "invoke_workflow":
                target = Attribute.GEN_AI_WORKFLOW;
                break;
            case "retrieval":
                target = Attribute.GEN_AI_DATA_SOURCE;
                break;
            default:
        }
        setTarget(operation, values.text(target));
    }

    private void deriveMessaging() {
        String operation =
                firstText(Attribute.MESSAGING_OPERATION, Attribute.OLD_MESSAGING_OPERATION, Attribute.MESSAGING_OPERATION_TYPE);
        String template = values.text(Attribute.MESSAGING_TEMPLATE);
        if (!template.isEmpty()) {
            setTarget(operation, template);
        } else if (isTrue(Attribute.MESSAGING_TEMPORARY) || isTrue(Attribute.OLD_MESSAGING_TEMPORARY)
                || isTrue(Attribute.MESSAGING_ANONYMOUS)) {
            set(operation, "", "");
        } else {
            String destination = values.text(Attribute.MESSAGING_DESTINATION, Attribute.OLD_MESSAGING_DESTINATION);
            setTarget(operation, destination.isEmpty() ? serverAndPort() : destination);
        }
    }

    private void deriveRpc() {
        String method = values.text(Attribute.RPC_METHOD);
        String service = values.text(Attribute.RPC_SERVICE);
        String system = values.text(Attribute.RPC_SYSTEM, Attribute.OLD_RPC_SYSTEM);
        if (method.equals(UNKNOWN_METHOD)) {
            set(system, "", "");
        } else if (method.isEmpty() || service.isEmpty() || method.indexOf('/') >= 0) {
            set(method, "", "");
        } else {
            set(service, system.equals(AWS) ? "." : "/", method);
        }
    }

    private void deriveDatabase(String sent) {
        String summary = values.text(Attribute.DB_SUMMARY);
        String operation = values.text(Attribute.DB_OPERATION, Attribute.OLD_DB_OPERATION);
        if (!summary.isEmpty()) {
            set(summary, "", "");
            return;
        }
        if (operation.isEmpty() && !isStatement(sent)) {
            return;
        }
        String system = values.text(Attribute.DB_SYSTEM, Attribute.OLD_DB_SYSTEM);
        String target = firstText(
                Attribute.DB_COLLECTION, Attribute.OLD_DB_COLLECTION, Attribute.MONGODB_COLLECTION, Attribute.CASSANDRA_TABLE,
                Attribute.DB_PROCEDURE);
        if (target.isEmpty() && !system.equals("redis")) {
            target = values.text(Attribute.DB_NAMESPACE, Attribute.OLD_DB_NAMESPACE);
            target = target.isEmpty() ? serverAndPort() : target;
        }
        if (!operation.isEmpty()) {
            setTarget(operation, target);
        } else {
            set(target.isEmpty() ? system : target, "", "");
        }
    }

    private boolean isStatement(String name) {
        return name.indexOf(' ') >= 0 && name.equals(values.text(Attribute.DB_QUERY, Attribute.OLD_DB_STATEMENT));
    }

    private void deriveServer(String sent) {
        String method = method();
        String attribute = values.text(Attribute.HTTP_ROUTE);
        if (attribute.isEmpty()) {
            route = routeIn(sent, method, true);
        }
        setTarget(method, attribute.isEmpty() ? route : attribute);
    }

    /** Returns the HTTP method: HTTP if the conventions do not know it. */
    private String method() {
        String sent = values.text(Attribute.HTTP_METHOD, Attribute.OLD_HTTP_METHOD);
        for (String known : METHODS) {
            if (equalFold(known, sent)) {
                return known;
            }
        }
        return sent.isEmpty() ? "" : "HTTP";
    }

    /**
     * Returns the route that the name of an HTTP span contains after its method, or an empty string.
     * A text with a placeholder is a route unless it is the path. A text without one is a route only
     * if the instrumentation writes no paths into names, like those with the tag of Zipkin.
     */
    private String routeIn(String name, String method, boolean isServer) {
        String text = pathIn(name, method);
        if (text.isEmpty() || text.indexOf('?') >= 0 || text.indexOf(' ') >= 0) {
            return "";
        }
        boolean isZipkin = values.text(Attribute.URL_PATH).isEmpty() && !values.text(Attribute.ZIPKIN_PATH).isEmpty();
        String path = urlPath();
        boolean isPath = !path.isEmpty() && endsIn(path, text);
        if (hasAny(text, "{<[(:*")) {
            return isPath ? "" : text;
        }
        if (!isServer || !isZipkin) {
            return "";
        }
        return isPath && (Statuses.http(values) == 404 || hasIdentifier(text)) ? "" : text;
    }

    /**
     * Returns the part of a name from its first slash, if the part before is empty or names the
     * method.
     */
    private static String pathIn(String name, String method) {
        int at = name.indexOf('/');
        if (at < 0) {
            return "";
        }
        String before = name.substring(0, at);
        if (before.length() > 5 && equalFold(before.substring(0, 5), "HTTP ")) {
            before = before.substring(5);
        }
        boolean isMethod = before.length() == method.length() + 1
                && equalFold(before.substring(0, method.length()), method) && before.endsWith(" ");
        return before.isEmpty() || isMethod ? name.substring(at) : "";
    }

    private String urlPath() {
        String path = firstText(Attribute.URL_PATH, Attribute.ZIPKIN_PATH);
        if (!path.isEmpty()) {
            return path;
        }
        path = values.text(Attribute.OLD_HTTP_TARGET);
        if (path.isEmpty()) {
            path = values.text(Attribute.URL_FULL, Attribute.OLD_HTTP_URL);
        }
        int host = path.indexOf("://");
        if (host >= 0) {
            path = path.substring(host + 3);
            path = path.substring(Math.max(0, path.indexOf('/')));
        }
        int query = path.indexOf('?');
        return query < 0 ? path : path.substring(0, query);
    }

    /** Reports whether a path, which can have escaped bytes, ends in a text. */
    private static boolean endsIn(String path, String text) {
        byte[] in = path.getBytes(StandardCharsets.UTF_8);
        byte[] wanted = text.getBytes(StandardCharsets.UTF_8);
        int end = in.length;
        for (int i = wanted.length - 1; i >= 0; i--) {
            if (end == 0) {
                return false;
            }
            int b = in[end - 1];
            int size = 1;
            if (end >= 3 && in[end - 3] == '%') {
                int high = unhex(in[end - 2]);
                int low = unhex(b);
                if (high < 16 && low < 16) {
                    b = (byte) (high << 4 | low);
                    size = 3;
                }
            }
            if (lower(b) != lower(wanted[i])) {
                return false;
            }
            end -= size;
        }
        return true;
    }

    /** Reports whether a segment of a path contains a digit, and is not a version such as v1. */
    private static boolean hasIdentifier(String path) {
        for (String segment : path.split("/")) {
            boolean isVersion = segment.startsWith("v") && segment.length() <= 3;
            if (!isVersion && hasAny(segment, "0123456789")) {
                return true;
            }
        }
        return false;
    }

    private String serverAndPort() {
        String address = values.text(Attribute.SERVER_ADDRESS, Attribute.OLD_PEER_NAME);
        String port = values.text(Attribute.SERVER_PORT, Attribute.OLD_PEER_PORT);
        return address.isEmpty() || port.isEmpty() ? address : joined.join(joined.join(address, ":"), port);
    }

    private boolean has(Attribute attribute) {
        return values.of(attribute) != null;
    }

    private boolean isTrue(Attribute attribute) {
        Object value = values.of(attribute);
        return Boolean.TRUE.equals(value) || "true".equals(value);
    }

    /** Returns the first text that is not empty. */
    private String firstText(Attribute... attributes) {
        for (Attribute attribute : attributes) {
            String text = values.text(attribute);
            if (!text.isEmpty()) {
                return text;
            }
        }
        return "";
    }

    private static boolean hasAny(String text, String any) {
        for (int i = 0; i < any.length(); i++) {
            if (text.indexOf(any.charAt(i)) >= 0) {
                return true;
            }
        }
        return false;
    }

    /** Reports whether two texts are equal, whatever the case of their ASCII letters. */
    private static boolean equalFold(String a, String b) {
        if (a.length() != b.length()) {
            return false;
        }
        for (int i = 0; i < a.length(); i++) {
            if (lower(a.charAt(i)) != lower(b.charAt(i))) {
                return false;
            }
        }
        return true;
    }

    private static int lower(int c) {
        return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c;
    }

    /** Returns the value of a hexadecimal digit, or 16. */
    private static int unhex(int c) {
        int digit = c < 0 ? -1 : Character.digit((char) c, 16);
        return digit < 0 ? 16 : digit;
    }
}
