"""Names of spans by OpenTelemetry's semantic conventions, as the daemon derives them (internal/rules/otel/names.go).

Instrumentations write names in many forms, some with identifiers. A name that is derived from attributes is the same for
all spans of the same work. docs/semantics.md explains the rules.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from opentelemetry.trace import SpanKind

from spanstatsd_opentelemetry.attributes import Attributes, lower

VARIABLE = "SPANSTATSD_SPAN_NAMES"  # the daemon reads it as well

_HTTP_METHOD = ("http.request.method", "http.method")
_METHODS = {"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "QUERY"}
_MESSAGING_OPERATION = ("messaging.operation.name", "messaging.operation.type", "messaging.operation")
_MESSAGING_DESTINATION = ("messaging.destination.name", "messaging.destination")
_DB_SYSTEM = ("db.system.name", "db.system")
_DB_OPERATION = ("db.operation.name", "db.operation")

_PLACEHOLDERS = frozenset("{<[(:*")


class Name(NamedTuple):
    """The name under which a span is counted."""

    text: str
    route: str = ""  # that only the sent name contains


def keep_names() -> bool:
    """Reports whether spans are counted under the names that they have, according to the environment."""
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "convention", "as-sent"):
        raise ValueError(f"read {VARIABLE}: {value!r} is not a rule for names; set convention or as-sent")
    return value == "as-sent"


def by_convention(sent: str, kind: SpanKind, a: Attributes) -> Name:
    """Returns the name of a span by the first rule that applies, or the name that it has."""
    if a.has("mcp.method.name"):
        name = _joined(a.text("mcp.method.name"), a.first_text("gen_ai.tool.name", "gen_ai.prompt.name"))
    elif a.has("gen_ai.operation.name"):
        name = _of_gen_ai(a)
    elif a.has(*_MESSAGING_OPERATION):
        name = _of_messaging(a)
    elif a.has("rpc.method"):
        name = _of_rpc(a)
    elif kind is not SpanKind.SERVER and a.has(*_DB_SYSTEM, *_DB_OPERATION, "db.query.summary"):
        name = _of_database(sent, a)
    elif kind in (SpanKind.SERVER, SpanKind.CLIENT) and a.has(*_HTTP_METHOD):
        return _of_http(sent, kind, a)
    else:
        name = ""
    return Name(name or sent)


def depends_on_path(sent: str, kind: SpanKind, a: Attributes) -> bool:
    """Reports whether the name of a span can depend on attributes that differ from span to span: PATH_ATTRIBUTES, or the
    address of a server that is not a peer of the span. The answer depends on other attributes only."""
    has_peer = kind in (SpanKind.CLIENT, SpanKind.PRODUCER, SpanKind.CONSUMER)
    if a.has("mcp.method.name", "gen_ai.operation.name"):
        return False
    if a.has(*_MESSAGING_OPERATION):
        return not has_peer
    if a.has("rpc.method"):
        return False
    if kind is not SpanKind.SERVER and a.has(*_DB_SYSTEM, *_DB_OPERATION, "db.query.summary"):
        if a.text(*_DB_OPERATION) or a.text("db.query.summary"):
            return not has_peer
        return " " in sent
    if a.has(*_HTTP_METHOD) and not a.text("http.route" if kind is SpanKind.SERVER else "url.template"):
        return "/" in sent
    return False


# Attributes that only names are made of, with few values.
NAME_ATTRIBUTES = frozenset(
    (
        "url.template", "server.port", "net.peer.port", "db.query.summary", "db.stored_procedure.name",
        "db.mongodb.collection", "db.cassandra.table", "messaging.destination.template",
        "messaging.destination.temporary", "messaging.temp_destination", "messaging.destination.anonymous",
        "mcp.method.name", "gen_ai.operation.name", "gen_ai.request.model", "gen_ai.tool.name", "gen_ai.agent.name",
        "gen_ai.workflow.name", "gen_ai.data_source.id", "gen_ai.prompt.name",
    )
)  # fmt: skip

# Attributes that names can depend on, with any number of values.
PATH_ATTRIBUTES = frozenset(
    ("url.path", "http.path", "http.target", "url.full", "http.url", "db.query.text", "db.statement")
)


def _joined(operation: str, target: str) -> str:
    return f"{operation} {target}" if operation and target else operation


def _of_gen_ai(a: Attributes) -> str:
    operation = a.text("gen_ai.operation.name")
    targets = {
        "execute_tool": "gen_ai.tool.name",
        "create_agent": "gen_ai.agent.name",
        "invoke_agent": "gen_ai.agent.name",
        "invoke_workflow": "gen_ai.workflow.name",
        "retrieval": "gen_ai.data_source.id",
    }
    return _joined(operation, a.text(targets.get(operation, "gen_ai.request.model")))


def _of_messaging(a: Attributes) -> str:
    operation = a.first_text("messaging.operation.name", "messaging.operation", "messaging.operation.type")
    template = a.text("messaging.destination.template")
    if template:
        return _joined(operation, template)
    if a.is_true("messaging.destination.temporary", "messaging.temp_destination", "messaging.destination.anonymous"):
        return operation
    return _joined(operation, a.text(*_MESSAGING_DESTINATION) or _server_and_port(a))


def _of_rpc(a: Attributes) -> str:
    method, service = a.text("rpc.method"), a.text("rpc.service")
    system = a.text("rpc.system.name", "rpc.system")
    if method == "_OTHER":
        return system
    if not method or not service or "/" in method:
        return method
    return f"{service}{'.' if system == 'aws-api' else '/'}{method}"


def _of_database(sent: str, a: Attributes) -> str:
    summary = a.text("db.query.summary")
    if summary:
        return summary
    operation = a.text(*_DB_OPERATION)
    is_statement = " " in sent and sent == a.text("db.query.text", "db.statement")
    if not operation and not is_statement:
        return ""
    system = a.text(*_DB_SYSTEM)
    target = a.first_text(
        "db.collection.name", "db.sql.table", "db.mongodb.collection", "db.cassandra.table", "db.stored_procedure.name"
    )
    if not target and system != "redis":  # whose namespace is a number, and whose operations need no target
        target = a.text("db.namespace", "db.name") or _server_and_port(a)
    return _joined(operation, target) if operation else target or system


def _server_and_port(a: Attributes) -> str:
    address, port = a.text("server.address", "net.peer.name"), a.text("server.port", "net.peer.port")
    return f"{address}:{port}" if address and port else address


def _of_http(sent: str, kind: SpanKind, a: Attributes) -> Name:
    method = _http_method(a)
    if kind is SpanKind.SERVER:
        target = a.text("http.route")
        route = "" if target else _route_in(sent, method, kind, a)
    else:
        target, route = a.text("url.template") or _route_in(sent, method, kind, a), ""
    return Name(_joined(method, target or route) or sent, route)


def _http_method(a: Attributes) -> str:
    """Returns the HTTP method. It is HTTP if it is not a known one, because callers of a server can send any text."""
    sent = a.text(*_HTTP_METHOD)
    known = sent.upper() if sent.isascii() else ""
    return known if known in _METHODS else "HTTP" if sent else ""


def _route_in(name: str, method: str, kind: SpanKind, a: Attributes) -> str:
    """Returns the route that the name of an HTTP span contains after its method, or an empty text.

    A text with a placeholder is a route, unless it is the path of the request. A text without one is a route only if it
    is from an instrumentation that writes no paths into names, like those with the tag of Zipkin.
    """
    text = _path_in(name, method)
    if not text or "?" in text or " " in text:
        return ""
    path, is_zipkin = a.text("url.path"), False
    if not path:
        path, is_zipkin = _other_path(a)
    is_path = bool(path) and _ends_in(path, text)
    if not _PLACEHOLDERS.isdisjoint(text):
        return "" if is_path else text
    if kind is not SpanKind.SERVER or not is_zipkin:
        return ""
    return "" if is_path and (_has_identifier(text) or a.http_status() == 404) else text


def _path_in(name: str, method: str) -> str:
    """Returns the part of a name from its first slash, if the part before is empty or names the method."""
    before, slash, after = name.partition("/")
    if not slash:
        return ""
    before = lower(before)
    if len(before) > 5 and before.startswith("http "):
        before = before[5:]
    return slash + after if before in ("", lower(method) + " ") else ""


def _other_path(a: Attributes) -> tuple[str, bool]:
    """Returns the path of a span without url.path, and whether it is from Zipkin's tag."""
    path = a.text("http.path")
    if path:
        return path, True
    path = a.text("http.target") or a.text("url.full", "http.url")
    _, scheme, after = path.partition("://")
    if scheme:
        path = after[max(0, after.find("/")) :]
    return path.partition("?")[0], False


def _ends_in(path: str, text: str) -> bool:
    """Reports whether a path, which can have escaped bytes and any prefix, ends in a text, in any case."""
    remaining = path.encode("utf-8", "replace")
    for wanted in reversed(text.encode("utf-8", "replace")):
        if not remaining:
            return False
        byte, size = remaining[-1:], 1
        if remaining[-3:-2] == b"%":
            try:
                byte, size = bytes.fromhex(remaining[-2:].decode("ascii")), 3
            except ValueError:
                pass  # not an escaped byte
        if byte.lower() != bytes((wanted,)).lower():
            return False
        remaining = remaining[:-size]
    return True


def _has_identifier(path: str) -> bool:
    """Reports whether a segment of a path contains a digit, and is not a version such as v1."""
    for segment in path.split("/"):
        is_version = segment.startswith("v") and len(segment) <= 3
        if not is_version and any("0" <= character <= "9" for character in segment):
            return True
    return False
