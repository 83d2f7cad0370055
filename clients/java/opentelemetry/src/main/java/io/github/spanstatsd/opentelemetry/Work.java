package io.github.spanstatsd.opentelemetry;

import io.opentelemetry.api.trace.SpanKind;
import java.util.Set;

/**
 * Derives the operation and the type of a span, as the daemon does for OTLP (internal/rules/work),
 * which follows the agent.
 */
final class Work {
    /** Database systems whose type is sql, by their current and older OpenTelemetry names. */
    private static final Set<String> SQL =
            Set.of(
                    "actian.ingres", "adabas", "aws.redshift", "cache", "clickhouse", "cloudscape", "cockroachdb", "coldfusion",
                    "db2", "derby", "edb", "filemaker", "firebird", "firebirdsql", "firstsql", "h2", "h2database", "hanadb",
                    "hsqldb", "ibm.db2", "ibm.informix", "ibm.netezza", "informix", "ingres", "instantdb", "interbase",
                    "intersystems.cache", "mariadb", "maxdb", "microsoft.sql_server", "mssql", "mysql", "netezza", "oracle",
                    "oracle.db", "other_sql", "pervasive", "pointbase", "postgresql", "progress", "redshift", "sap.hana",
                    "sap.maxdb", "softwareag.adabas", "sqlite", "sybase", "teradata", "vertica");

    /** Systems whose type is the name of the system. */
    private static final Set<String> OWN =
            Set.of("cassandra", "redis", "memcached", "mongodb", "elasticsearch", "opensearch");

    private final JoinedNames names = new JoinedNames(true);

    /** Returns the operation. */
    String operation(SpanValues values, SpanKind kind) {
        boolean isClient = kind == SpanKind.CLIENT;
        boolean isServer = kind == SpanKind.SERVER;
        boolean isCall = isClient || isServer;
        if (isCall && !values.text(Attribute.HTTP_METHOD, Attribute.OLD_HTTP_METHOD).isEmpty()) {
            return isServer ? "http.server.request" : "http.client.request";
        }
        String database = values.text(Attribute.DB_SYSTEM, Attribute.OLD_DB_SYSTEM);
        if (isClient && !database.isEmpty()) {
            return names.join(database, ".query");
        }
        String messages = values.text(Attribute.MESSAGING_SYSTEM);
        if (kind != SpanKind.INTERNAL && !messages.isEmpty() && !done(values).isEmpty()) {
            return names.join(names.join(messages, "."), done(values));
        }
        String rpc = values.text(Attribute.RPC_SYSTEM, Attribute.OLD_RPC_SYSTEM);
        if (isCall && !rpc.isEmpty()) {
            return isClient && rpc.equals("aws-api") ? aws(values) : request(rpc, isServer);
        }
        return otherOperation(values, kind);
    }

    private String otherOperation(SpanValues values, SpanKind kind) {
        boolean isClient = kind == SpanKind.CLIENT;
        boolean isServer = kind == SpanKind.SERVER;
        String provider = values.text(Attribute.FAAS_PROVIDER);
        String function = values.text(Attribute.FAAS_NAME);
        if (isClient && !provider.isEmpty() && !function.isEmpty()) {
            return names.join(names.join(names.join(provider, "."), function), ".invoke");
        }
        String trigger = values.text(Attribute.FAAS_TRIGGER);
        if (isServer && !trigger.isEmpty()) {
            return names.join(trigger, ".invoke");
        }
        if (!values.text(Attribute.GRAPHQL_TYPE).isEmpty()) {
            return "graphql.server.request";
        }
        if (isClient || isServer) {
            return request(values.text(Attribute.PROTOCOL), isServer);
        }
        return kind == SpanKind.PRODUCER ? "Producer" : kind == SpanKind.CONSUMER ? "Consumer" : "Internal";
    }

    /** Returns the messaging operation. */
    private static String done(SpanValues values) {
        String type = values.text(Attribute.MESSAGING_OPERATION_TYPE, Attribute.OLD_MESSAGING_OPERATION);
        return type.isEmpty() ? values.text(Attribute.MESSAGING_OPERATION) : type;
    }

    /** Returns the operation of an AWS call, named after the called service. */
    private String aws(SpanValues values) {
        String service = values.text(Attribute.RPC_SERVICE);
        return service.isEmpty() ? "aws.client.request" : names.join(names.join("aws.", service), ".request");
    }

    /** Returns the operation of a request, named after the protocol if it is known. */
    private String request(String protocol, boolean isServer) {
        if (protocol.isEmpty()) {
            return isServer ? "server.request" : "client.request";
        }
        return names.join(protocol, isServer ? ".server.request" : ".client.request");
    }

    /** Returns the type. */
    static String type(SpanValues values, SpanKind kind) {
        if (kind != SpanKind.CLIENT) {
            return kind == SpanKind.SERVER ? "web" : "custom";
        }
        String system = values.text(Attribute.DB_SYSTEM, Attribute.OLD_DB_SYSTEM);
        if (system.isEmpty()) {
            return "http";
        }
        return SQL.contains(system) ? "sql" : OWN.contains(system) ? system : "db";
    }
}
