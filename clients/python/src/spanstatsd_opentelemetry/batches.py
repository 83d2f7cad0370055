"""Packs spans into batches, with numbers instead of their keys.

A key is sent once per connection, with a number, and a span then takes 17 bytes. A batch refers to a table of keys with
numbers from 0 on. A table never changes the number of a key, so a batch can be written to any connection, after the
definitions of its keys. A full table is replaced by an empty one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanstatsd_opentelemetry import messages
from spanstatsd_opentelemetry.msgpack import pack

BATCH_SPANS = 256  # every daemon accepts so many spans per batch
BATCH_BYTES = 60_000  # and messages of 64 KiB

# Limits of a table, below those of every daemon.
MAX_KEYS = 512
MAX_KEY_BYTES = 40 << 10
MAX_COST = MAX_KEY_BYTES + MAX_KEYS * (31 + 128)  # what a daemon charges for a full table at most

_MAX_NUMBERED = 4 << 10  # longer keys are sent without a number
_MAX_KEY = 20 << 10  # longer keys are cut

ERROR = 1
TOP_LEVEL = 2

# A span: key, duration and end in nanoseconds, flags.
Span = tuple["Key", int, int, int]

# Positions of labels in a key, and the maximum number of bytes that the daemon reads of them.
_LABELS = {
    "service": 100, "operation": 100, "resource": 5000, "type": 100, "kind": 200, "trace_root": 0, "http_status": 0,
    "peer_tags": 200, "http_method": 200, "http_endpoint": 200, "grpc_status": 200, "service_source": 200,
    "synthetics": 0, "additional_tags": 400,
}  # fmt: skip
_MAX_PEER_TAGS = 64
_MAX_ADDITIONAL_TAGS = 4
_REQUIRED = 3  # service, operation and resource are always present


class Key:
    """The labels under which spans are counted, encoded once. Keep it next to the route or statement that it is for."""

    __slots__ = ("encoded", "place")

    def __init__(self, labels: Mapping[str, Any]) -> None:
        """Encodes labels: service, operation, resource, type, kind, trace_root, http_status, peer_tags, http_method,
        http_endpoint, grpc_status, service_source, synthetics, additional_tags. All are optional. Tags are lists of
        texts like "name:value", in the order of their bytes."""
        unknown = labels.keys() - _LABELS.keys()
        if unknown:
            raise ValueError(f"encode key: {', '.join(sorted(unknown))} is not a label; use {', '.join(_LABELS)}")
        encoded = _encode(labels)
        if len(encoded) > _MAX_KEY:
            encoded = _encode({name: _cut(name, value) for name, value in labels.items()})
        self.encoded = encoded
        # Table and number that were used last. One attribute, so that threads of several clients see both or neither.
        self.place: tuple[KeyTable | None, int] = (None, 0)


def _encode(labels: Mapping[str, Any]) -> bytes:
    values = [labels.get(name) for name in _LABELS]
    # Absent labels have one canonical form, because the daemon finds a key by its bytes. False is one for trace_root.
    values = [value if value or name == "trace_root" else None for name, value in zip(_LABELS, values)]
    values[:_REQUIRED] = [value or "" for value in values[:_REQUIRED]]
    while len(values) > _REQUIRED and values[-1] is None:
        values.pop()
    return pack(values)


def _cut(name: str, value: Any) -> Any:
    """Removes text that the daemon ignores. A character has at least one byte."""
    limit = _LABELS[name]
    if isinstance(value, str):
        return value[: limit + 4]
    if name.endswith("_tags") and value:
        return [tag[: limit + 4] for tag in value[: _MAX_PEER_TAGS if name == "peer_tags" else _MAX_ADDITIONAL_TAGS]]
    return value


class KeyTable:
    """Keys by number."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._bytes = 0

    def number(self, encoded: bytes) -> int | None:
        """Returns the number of a key, or None if the table is full."""
        number = self._numbers.get(encoded)
        if number is None and len(self.keys) < MAX_KEYS and self._bytes + len(encoded) <= MAX_KEY_BYTES:
            number = self._numbers[encoded] = len(self.keys)
            self.keys.append(encoded)
            self._bytes += len(encoded)
        return number


@dataclass
class Batch:
    """A message with spans, and the keys that must be defined before it."""

    frame: bytes
    spans: int
    table: KeyTable
    keys: int  # the first so many keys of the table
    size: int  # memory


class Definitions:
    """The keys that are defined on a connection."""

    def __init__(self) -> None:
        self._table: KeyTable | None = None
        self._count = 0

    def missing(self, batch: Batch) -> bytes:
        """Returns the message that defines the missing keys of a batch, or nothing if there are none. The message is
        written before the batch."""
        if self._table is not batch.table:
            self._table, self._count = batch.table, 0
        if self._count >= batch.keys:
            return b""
        message = messages.define(self._count, batch.table.keys[self._count : batch.keys])
        self._count = batch.keys
        return message


# Rows with a number below 128 and a duration below 4.3 s, with a number of two bytes, and with any duration.
_SHORT = struct.Struct(">BBBIBQB")
_MEDIUM = struct.Struct(">BBHBIBQB")
_LONG = struct.Struct(">BBHBQBQB")
_WHOLE = struct.Struct(">BQBQB")  # after a key without a number
_HEAD = struct.Struct(">IBBBI")  # length of the message, [type, [count

_MAX_END = (1 << 63) - 1
_MAX_DURATION = (1 << 64) - 1


class Packer:
    """Packs spans into batches. It is used by one thread."""

    def __init__(self) -> None:
        self._table = KeyTable()
        self._rows = bytearray()
        self._count = 0
        self._batches: list[Batch] = []
        self._key_bytes = 0  # of keys that the current batch has added to the table

    def pack(self, spans: Iterable[Span]) -> Sequence[Batch]:
        """Returns batches with all spans."""
        for key, duration, end, flags in spans:
            table, number = key.place
            if table is not self._table:
                number = self._number(key)
            try:
                if number < 128 and duration < 1 << 32:
                    row = _SHORT.pack(0x94, number, 0xCE, duration, 0xCF, end, flags)
                else:
                    row = self._long_row(key, number, duration, end, flags)
            except (struct.error, TypeError):  # a negative number, or none
                row = self._long_row(key, number, _clamp(duration, _MAX_DURATION), _clamp(end, _MAX_END), flags & 3)
            self._rows += row
            self._count += 1
            if self._count == BATCH_SPANS or len(self._rows) > BATCH_BYTES - _MAX_KEY:
                self._seal()
        self._seal()
        batches, self._batches = self._batches, []
        return batches

    def _number(self, key: Key) -> int:
        """Returns the number of a key, or -1 if it is too long for one."""
        if len(key.encoded) > _MAX_NUMBERED:
            return -1
        before = len(self._table.keys)
        number = self._table.number(key.encoded)
        if number is None:
            self._seal()
            self._table, before = KeyTable(), 0
            number = self._table.number(key.encoded)
            assert number is not None
        if len(self._table.keys) > before:
            self._key_bytes += len(key.encoded)
        key.place = (self._table, number)
        return number

    @staticmethod
    def _long_row(key: Key, number: int, duration: int, end: int, flags: int) -> bytes:
        if number < 0:
            return b"\x94" + pack(key.encoded) + _WHOLE.pack(0xCF, duration, 0xCF, end, flags)
        if duration < 1 << 32:
            return _MEDIUM.pack(0x94, 0xCD, number, 0xCE, duration, 0xCF, end, flags)
        return _LONG.pack(0x94, 0xCD, number, 0xCF, duration, 0xCF, end, flags)

    def _seal(self) -> None:
        """Completes the current batch, unless it is empty."""
        if self._count == 0:
            return
        length = len(self._rows) + _HEAD.size - messages.HEADER.size
        frame = _HEAD.pack(length, 0x92, messages.SPANS, 0xDD, self._count) + self._rows
        size = len(frame) + self._key_bytes
        self._batches.append(Batch(frame, self._count, self._table, len(self._table.keys), size))
        self._rows, self._count, self._key_bytes = bytearray(), 0, 0


def _clamp(number: Any, most: int) -> int:
    try:
        return min(max(int(number), 0), most)
    except (TypeError, ValueError, OverflowError):  # not a number, or not a finite one
        return 0
