"""Labels of a span, the same as the daemon's for that span over OTLP (internal/rules/otel).

internal/rules/otel/testdata/labels.json has spans with their labels, which all implementations are tested with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.trace import SpanKind, StatusCode

from spanstatsd_opentelemetry.attributes import Attributes, lower
from spanstatsd_opentelemetry.names import NAME_ATTRIBUTES, Name

# Attributes that become peer tags, sorted, with their older names.
_TAGS = (
    ("db.collection.name", "db.sql.table"),
    ("db.namespace", "db.name"),
    ("db.operation.name", "db.operation"),
    ("db.system.name", "db.system"),
    ("gen_ai.operation.name",),
    ("gen_ai.provider.name", "gen_ai.system"),
    ("gen_ai.request.model",),
    ("gen_ai.response.model",),
    ("messaging.destination.name", "messaging.destination"),
    ("messaging.operation.name",),
    ("messaging.operation.type", "messaging.operation"),
    ("messaging.system",),
    ("peer.service",),
    ("rpc.method",),
    ("rpc.service",),
    ("rpc.system.name", "rpc.system"),
    ("server.address", "net.peer.name"),
)

# Attributes that describe the called service. In other spans they describe the caller, which controls their values.
_PEER_ATTRIBUTES = frozenset(("peer.service", "server.address", "net.peer.name"))
_KINDS_WITH_PEER = (SpanKind.CLIENT, SpanKind.PRODUCER, SpanKind.CONSUMER)

_LABEL_ATTRIBUTES = (
    frozenset(name for names in _TAGS for name in names)
    | NAME_ATTRIBUTES
    | {
        "http.request.method", "http.method", "http.route", "http.response.status_code", "http.status_code",
        "rpc.grpc.status_code", "rpc.response.status_code", "faas.invoked_provider", "faas.invoked_name",
        "faas.trigger", "graphql.operation.type", "network.protocol.name",
    }
)  # fmt: skip

# Attributes that the labels of a span depend on, by the number of its kind, without those that only its name depends on.
ATTRIBUTES_BY_KIND = {
    kind.value: _LABEL_ATTRIBUTES if kind in _KINDS_WITH_PEER else _LABEL_ATTRIBUTES - _PEER_ATTRIBUTES
    for kind in SpanKind
}

_SQL_SYSTEMS = frozenset(
    [
        "actian.ingres",
        "adabas",
        "aws.redshift",
        "cache",
        "clickhouse",
        "cloudscape",
        "cockroachdb",
        "coldfusion",
        "db2",
        "derby",
        "edb",
        "filemaker",
        "firebird",
        "firebirdsql",
        "firstsql",
        "h2",
        "h2database",
        "hanadb",
        "hsqldb",
        "ibm.db2",
        "ibm.informix",
        "ibm.netezza",
        "informix",
        "ingres",
        "instantdb",
        "interbase",
        "intersystems.cache",
        "mariadb",
        "maxdb",
        "microsoft.sql_server",
        "mssql",
        "mysql",
        "netezza",
        "oracle",
        "oracle.db",
        "other_sql",
        "pervasive",
        "pointbase",
        "postgresql",
        "progress",
        "redshift",
        "sap.hana",
        "sap.maxdb",
        "softwareag.adabas",
        "sqlite",
        "sybase",
        "teradata",
        "vertica",
    ]
)
_OTHER_SYSTEMS = frozenset(["cassandra", "redis", "memcached", "mongodb", "elasticsearch", "opensearch"])


def labels_of(
    service: str, name: Name, kind: SpanKind, is_root: bool, status: StatusCode, a: Attributes
) -> Mapping[str, Any]:
    """Returns the labels of a span, for Key."""
    has_peer = kind in _KINDS_WITH_PEER
    tags = []
    for names in _TAGS:
        if has_peer or names[0] not in _PEER_ATTRIBUTES:
            value = a.text(*names)
            if value:
                tags.append(f"{names[0]}:{value}")
    return {
        "service": service,
        "operation": _operation(kind, a),
        "resource": name.text,
        "type": _type(kind, a),
        "kind": kind.name.lower(),
        "trace_root": is_root,
        "http_status": a.http_status(),
        "peer_tags": tags,
        "http_method": a.text("http.request.method", "http.method"),
        "http_endpoint": a.text("http.route") or name.route,
        "grpc_status": a.grpc_status(),
        "additional_tags": ["otel.status_code:OK"] if status is StatusCode.OK else [],
    }


def _operation(kind: SpanKind, a: Attributes) -> str:
    is_client, is_server = kind is SpanKind.CLIENT, kind is SpanKind.SERVER
    if (is_client or is_server) and a.text("http.request.method", "http.method"):
        return _request("http", is_server)
    database = a.text("db.system.name", "db.system")
    if is_client and database:
        return lower(database) + ".query"
    messaging = a.text("messaging.system")
    done = a.text("messaging.operation.type", "messaging.operation") or a.text("messaging.operation.name")
    if kind is not SpanKind.INTERNAL and messaging and done:
        return lower(f"{messaging}.{done}")
    rpc = a.text("rpc.system.name", "rpc.system")
    if (is_client or is_server) and rpc:
        if is_client and rpc == "aws-api":
            service = a.text("rpc.service")
            return f"aws.{lower(service)}.request" if service else "aws.client.request"
        return _request(rpc, is_server)
    provider, function = a.text("faas.invoked_provider"), a.text("faas.invoked_name")
    if is_client and provider and function:
        return lower(f"{provider}.{function}") + ".invoke"
    trigger = a.text("faas.trigger")
    if is_server and trigger:
        return lower(trigger) + ".invoke"
    if a.text("graphql.operation.type"):
        return "graphql.server.request"
    if is_client or is_server:
        return _request(a.text("network.protocol.name"), is_server)
    return kind.name.capitalize()


def _request(protocol: str, is_server: bool) -> str:
    prefix = lower(protocol) + "." if protocol else ""
    return prefix + ("server.request" if is_server else "client.request")


def _type(kind: SpanKind, a: Attributes) -> str:
    if kind is not SpanKind.CLIENT:
        return "web" if kind is SpanKind.SERVER else "custom"
    system = a.text("db.system.name", "db.system")
    if not system:
        return "http"
    if system in _SQL_SYSTEMS:
        return "sql"
    return system if system in _OTHER_SYSTEMS else "db"
