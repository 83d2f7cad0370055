package io.github.spanstatsd.opentelemetry;

/**
 * The attributes of a span that labels are made of, by OpenTelemetry's semantic conventions. Those
 * that mean the same stand one behind the other, the present name first. The daemon's own list is
 * internal/rules/otel/labels.go; the vectors in internal/rules/otel/testdata hold the two equal.
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
    PROTOCOL("network.protocol.name");

    /** How many there are. */
    static final int COUNT = values().length;

    /** What {@link #numberOf} says of every other name. */
    static final int NONE = -1;

    /** Eight times as many places as names, so that a name that is none of them meets few. */
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
    private final boolean isOlder; // a name of the one before it

    Attribute(String name) {
        this(name, false);
    }

    Attribute(String name, boolean isOlder) {
        this.name = name;
        this.isOlder = isOlder;
    }

    /** The older name of the same, null where there is none. */
    Attribute older() {
        Attribute next = this == PROTOCOL ? this : ALL[ordinal() + 1];
        return next.isOlder ? next : null;
    }

    String attributeName() {
        return name;
    }

    /** The ordinal of the attribute with a name, or {@link #NONE}. It is asked for every attribute. */
    static int numberOf(String name) {
        for (int at = name.hashCode() & MASK; NAMES[at] != null; at = (at + 1) & MASK) {
            if (NAMES[at].equals(name)) {
                return NUMBERS[at];
            }
        }
        return NONE;
    }
}
