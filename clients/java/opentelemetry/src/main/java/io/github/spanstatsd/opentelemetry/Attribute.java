package io.github.spanstatsd.opentelemetry;

/**
 * Span attributes from which labels are derived, according to OpenTelemetry's semantic conventions.
 * Names with the same meaning are adjacent, the current name first. The daemon has the same list in
 * internal/rules/otel/labels.go; the vectors in internal/rules/otel/testdata verify that both
 * agree.
 */
enum Attribute {
    HTTP_METHOD("http.request.method"),
    OLD_HTTP_METHOD("http.method", true),
    HTTP_ROUTE("http.route"),
    HTTP_STATUS("http.response.status_code"),
    OLD_HTTP_STATUS("http.status_code", true),
    GRPC_STATUS("rpc.grpc.status_code"),
    RPC_STATUS("rpc.response.status_code"),
    DB_SYSTEM("db.system.name"),
    OLD_DB_SYSTEM("db.system", true),
    DB_NAMESPACE("db.namespace"),
    OLD_DB_NAMESPACE("db.name", true),
    DB_COLLECTION("db.collection.name"),
    OLD_DB_COLLECTION("db.sql.table", true),
    DB_OPERATION("db.operation.name"),
    OLD_DB_OPERATION("db.operation", true),
    MESSAGING_SYSTEM("messaging.system"),
    MESSAGING_DESTINATION("messaging.destination.name"),
    OLD_MESSAGING_DESTINATION("messaging.destination", true),
    MESSAGING_OPERATION("messaging.operation.name"),
    MESSAGING_OPERATION_TYPE("messaging.operation.type"),
    OLD_MESSAGING_OPERATION("messaging.operation", true),
    RPC_SYSTEM("rpc.system.name"),
    OLD_RPC_SYSTEM("rpc.system", true),
    RPC_SERVICE("rpc.service"),
    RPC_METHOD("rpc.method"),
    PEER_SERVICE("peer.service"),
    SERVER_ADDRESS("server.address"),
    OLD_PEER_NAME("net.peer.name"),
    FAAS_PROVIDER("faas.invoked_provider"),
    FAAS_NAME("faas.invoked_name"),
    FAAS_TRIGGER("faas.trigger"),
    GRAPHQL_TYPE("graphql.operation.type"),
    PROTOCOL("network.protocol.name"),
    GEN_AI_OPERATION("gen_ai.operation.name"),
    GEN_AI_PROVIDER("gen_ai.provider.name"),
    OLD_GEN_AI_SYSTEM("gen_ai.system", true),
    GEN_AI_MODEL("gen_ai.request.model"),
    GEN_AI_RESPONSE_MODEL("gen_ai.response.model"),

    // The following attributes are only part of names.
    URL_TEMPLATE("url.template"),
    URL_PATH("url.path"),
    ZIPKIN_PATH("http.path"),
    OLD_HTTP_TARGET("http.target"),
    URL_FULL("url.full"),
    OLD_HTTP_URL("http.url"),
    SERVER_PORT("server.port"),
    OLD_PEER_PORT("net.peer.port"),
    DB_SUMMARY("db.query.summary"),
    DB_PROCEDURE("db.stored_procedure.name"),
    MONGODB_COLLECTION("db.mongodb.collection"),
    CASSANDRA_TABLE("db.cassandra.table"),
    DB_QUERY("db.query.text"),
    OLD_DB_STATEMENT("db.statement"),
    MESSAGING_TEMPLATE("messaging.destination.template"),
    MESSAGING_TEMPORARY("messaging.destination.temporary"),
    OLD_MESSAGING_TEMPORARY("messaging.temp_destination"),
    MESSAGING_ANONYMOUS("messaging.destination.anonymous"),
    MCP_METHOD("mcp.method.name"),
    GEN_AI_TOOL("gen_ai.tool.name"),
    GEN_AI_AGENT("gen_ai.agent.name"),
    GEN_AI_WORKFLOW("gen_ai.workflow.name"),
    GEN_AI_DATA_SOURCE("gen_ai.data_source.id"),
    GEN_AI_PROMPT("gen_ai.prompt.name");

    /** Number of attributes, at most 64. */
    static final int COUNT = values().length;

    /** Result of {@link #numberOf} for any other name. */
    static final int NONE = -1;

    /** Eight times as many slots as names, so that a lookup of another name checks few slots. */
    private static final int MASK = 511;

    private static final String[] NAMES = new String[MASK + 1];
    private static final byte[] NUMBERS = new byte[MASK + 1];

    static {
        for (Attribute attribute : values()) {
            int at = attribute.name.hashCode() & MASK;
            while (NAMES[at] != null) {
                at = (at + 1) & MASK;
            }
            NAMES[at] = attribute.name;
            NUMBERS[at] = (byte) attribute.ordinal();
        }
    }

    private static final Attribute[] ALL = values();

    private final String name;
    private final boolean isOlder; // an older name of the previous attribute

    Attribute(String name) {
        this(name, false);
    }

    Attribute(String name, boolean isOlder) {
        this.name = name;
        this.isOlder = isOlder;
    }

    /** Returns the older name of the same attribute, or null. */
    Attribute older() {
        Attribute next = ordinal() + 1 < COUNT ? ALL[ordinal() + 1] : this;
        return next != this && next.isOlder ? next : null;
    }

    String attributeName() {
        return name;
    }

    /**
     * Returns the ordinal of the attribute with a name, or {@link #NONE}. It is called for every
     * attribute.
     */
    static int numberOf(String name) {
        for (int at = name.hashCode() & MASK; NAMES[at] != null; at = (at + 1) & MASK) {
            if (NAMES[at].equals(name)) {
                return NUMBERS[at];
            }
        }
        return NONE;
    }
}
