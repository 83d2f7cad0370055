"""Messages of the daemon's native protocol, version 1. docs/protocol.md specifies them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spanstatsd_opentelemetry.msgpack import MalformedError, pack, unpack

VERSION = 1

# Types of messages.
HELLO, WELCOME, FEATURES, DEFINE, SPANS, LOST, FLUSH, BYE = range(1, 9)

MAX_FRAME = 1 << 20  # longest message of the daemon
MAX_TOKEN = 64
HEADER = struct.Struct(">I")  # length of the message that follows

_MAX_LIST = 1024


@dataclass(frozen=True)
class Features:
    """Describes which spans the daemon wants."""

    stats: bool = True  # whether it wants any
    peer_tags: Sequence[str] = ()
    span_kinds: Sequence[str] = ()
    ignore_resources: Sequence[str] = ()
    obfuscation_version: int = 0


@dataclass(frozen=True)
class Welcome:
    """The daemon's response to hello."""

    version: int = 0
    daemon: str = ""  # name and version
    max_frame: int = 1 << 20
    max_batch: int = 1024
    max_keys: int = 8192
    max_key_bytes: int = 1 << 16
    features: Features = field(default_factory=Features)
    settled: bool = False
    interval: int = 0  # nanoseconds between reports
    token: str = ""
    earlier: Sequence[int] = ()

    @property
    def supports_recovery(self) -> bool:
        """Whether the next daemon can know the state of this connection's spans."""
        return self.settled and 0 < len(self.token.encode()) <= MAX_TOKEN


@dataclass(frozen=True)
class FlushResponse:
    """The daemon's response to flush."""

    id: int
    ok: bool
    error: str


class Bye(Exception):
    """The daemon's last message on a connection."""

    def __init__(self, reason: str, detail: str = "", versions: Sequence[int] = ()) -> None:
        text = f"the daemon said bye: {reason}"
        if detail:
            text += f": {detail}"
        if versions:
            text += f"; it supports the versions {list(versions)}"
        super().__init__(text)
        self.reason = reason
        self.detail = detail
        self.versions = versions


def frame(kind: int, body: Any) -> bytes:
    """Returns a message with its length."""
    message = pack([kind, body])
    return HEADER.pack(len(message)) + message


def hello(client: str, origin: Mapping[str, str], earlier: str = "") -> bytes:
    """Returns the first message of a connection, which requests settlement."""
    body: dict[str, Any] = {"version": VERSION, "client": client, "origin": dict(origin), "settled": True}
    if earlier:
        body["earlier"] = earlier
    return frame(HELLO, body)


def define(first: int, keys: Sequence[bytes]) -> bytes:
    """Returns the message that assigns the numbers from first on to keys."""
    return frame(DEFINE, [[first + i, key] for i, key in enumerate(keys)])


def lost(spans: Mapping[str, int]) -> bytes:
    """Returns a report of spans that were not sent, by reason."""
    return frame(LOST, spans)


def flush(id: int) -> bytes:
    """Returns a request for a report."""
    return frame(FLUSH, {"id": id})


def bye(reason: str) -> bytes:
    """Returns the last message of a client."""
    return frame(BYE, {"reason": reason})


def split(message: bytes) -> tuple[int, Any]:
    """Returns the type and the body of a message. Raises MalformedError."""
    value = unpack(message)
    if not isinstance(value, list) or len(value) != 2:
        raise MalformedError("a message is not an array of two")
    kind, body = value
    if type(kind) is not int or not HELLO <= kind <= BYE:
        raise MalformedError(f"{kind!r} is not a type of message")
    return kind, body


def read_welcome(body: Any) -> Welcome:
    """Decodes the body of a welcome. Raises MalformedError."""
    entries = _Entries(body)
    return Welcome(
        version=entries.integer("version"),
        daemon=entries.text("daemon"),
        max_frame=entries.limit("max_frame", 1 << 16, 1 << 30, 1 << 20),
        max_batch=entries.limit("max_batch", 256, 1 << 20, 1024),
        max_keys=entries.limit("max_keys", 1024, 1 << 20, 0) if entries.integer("max_keys") else 0,
        max_key_bytes=entries.integer("max_key_bytes") or 1 << 16,
        features=read_features(entries.get("features", dict) or {})[0],
        settled=entries.boolean("settled"),
        interval=entries.integer("interval"),
        token=entries.text("token"),
        earlier=entries.items("earlier", int),
    )


def read_features(body: Any) -> tuple[Features, int]:
    """Decodes the body of features. Returns them and the number of settled spans. Raises MalformedError."""
    entries = _Entries(body)
    features = Features(
        stats=entries.boolean("stats"),
        peer_tags=entries.items("peer_tags", str),
        span_kinds=entries.items("span_kinds", str),
        ignore_resources=entries.items("ignore_resources", str),
        obfuscation_version=entries.integer("obfuscation_version"),
    )
    return features, entries.integer("settled")


def read_flush(body: Any) -> FlushResponse:
    """Decodes the body of a response to flush. Raises MalformedError."""
    entries = _Entries(body)
    return FlushResponse(entries.integer("id"), entries.boolean("ok"), entries.text("error"))


def read_bye(body: Any) -> Bye:
    """Decodes the body of a bye. Raises MalformedError."""
    entries = _Entries(body)
    return Bye(entries.text("reason"), entries.text("detail"), entries.items("versions", int))


class _Entries:
    """Reads the entries of a body with the types that they must have. Missing entries and nil are zero values."""

    def __init__(self, body: Any) -> None:
        if not isinstance(body, dict):
            raise MalformedError("the body of a message is not a map")
        self.body = body

    def get(self, name: str, kind: type) -> Any:
        value = self.body.get(name)
        if value is not None and type(value) is not kind:
            raise MalformedError(f"{name} is {value!r}, which is not of type {kind.__name__}")
        return value

    def integer(self, name: str) -> int:
        value: int | None = self.get(name, int)
        if value is not None and value < 0:
            raise MalformedError(f"{name} is negative")
        return value or 0

    def limit(self, name: str, least: int, most: int, default: int) -> int:
        value = self.integer(name) or default
        if not least <= value <= most:
            raise MalformedError(f"{name} is {value}, not {least} to {most}")
        return value

    def boolean(self, name: str) -> bool:
        return bool(self.get(name, bool))

    def text(self, name: str) -> str:
        return self.get(name, str) or ""

    def items(self, name: str, kind: type) -> Sequence[Any]:
        values = self.get(name, list) or []
        if any(type(value) is not kind for value in values):
            raise MalformedError(f"an element of {name} is not of type {kind.__name__}")
        if kind is str and len(values) > _MAX_LIST:
            raise MalformedError(f"{name} has {len(values)} elements, more than {_MAX_LIST}")
        return values
