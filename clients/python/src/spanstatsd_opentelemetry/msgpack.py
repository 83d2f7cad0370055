"""Encodes and decodes msgpack, as far as the daemon's protocol needs it.

The protocol is small and the package must install without a compiler, so it does not depend on a msgpack library.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Union

MAX_DEPTH = 9  # nesting of a message: [type, body] and eight levels of the body

Value = Union[None, bool, int, float, str, bytes, Sequence[Any], Mapping[Any, Any]]


class MalformedError(Exception):
    """The bytes are not one msgpack value, or not the expected one."""


def pack(value: Value) -> bytes:
    """Returns the shortest encoding of a value."""
    out = bytearray()
    _pack(out, value)
    return bytes(out)


def _pack(out: bytearray, value: Value) -> None:
    if value is None:
        out.append(0xC0)
    elif value is True or value is False:
        out.append(0xC3 if value else 0xC2)
    elif isinstance(value, int):
        _pack_int(out, value)
    elif isinstance(value, float):
        out += struct.pack(">Bd", 0xCB, value)
    elif isinstance(value, str):
        text = value.encode("utf-8", "replace")  # a lone surrogate is not valid UTF-8
        _pack_header(out, len(text), 0xA0, 31, 0xD9, 0xDA, 0xDB)
        out += text
    elif isinstance(value, (bytes, bytearray)):
        _pack_header(out, len(value), None, 0, 0xC4, 0xC5, 0xC6)
        out += value
    elif isinstance(value, Mapping):
        _pack_header(out, len(value), 0x80, 15, None, 0xDE, 0xDF)
        for key, element in value.items():
            _pack(out, key)
            _pack(out, element)
    else:
        _pack_header(out, len(value), 0x90, 15, None, 0xDC, 0xDD)
        for element in value:
            _pack(out, element)


def _pack_int(out: bytearray, value: int) -> None:
    if -32 <= value < 0:
        out.append(value & 0xFF)
        return
    forms = (">Bb", 0xD0), (">Bh", 0xD1), (">Bi", 0xD2), (">Bq", 0xD3)
    if 0 <= value < 128:
        out.append(value)
        return
    if value >= 0:
        forms = (">BB", 0xCC), (">BH", 0xCD), (">BI", 0xCE), (">BQ", 0xCF)
    for form, lead in forms:
        try:
            out += struct.pack(form, lead, value)
            return
        except struct.error:
            continue
    raise ValueError(f"pack integer: {value} needs more than 64 bits")


def _pack_header(out: bytearray, length: int, fix: int | None, most: int, one: int | None, two: int, four: int) -> None:
    """Writes the lead byte and the length. fix is the lead byte for up to most elements, one for lengths of one byte."""
    if fix is not None and length <= most:
        out.append(fix | length)
    elif one is not None and length < 1 << 8:
        out += struct.pack(">BB", one, length)
    elif length < 1 << 16:
        out += struct.pack(">BH", two, length)
    else:
        out += struct.pack(">BI", four, length)


def unpack(data: bytes) -> Any:
    """Returns the only value in data. Extensions become None. Raises MalformedError."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise MalformedError(f"{len(data) - reader.at} bytes follow the message")
    return value


_NUMBERS = {
    0xCA: struct.Struct(">f"), 0xCB: struct.Struct(">d"),
    0xCC: struct.Struct(">B"), 0xCD: struct.Struct(">H"), 0xCE: struct.Struct(">I"), 0xCF: struct.Struct(">Q"),
    0xD0: struct.Struct(">b"), 0xD1: struct.Struct(">h"), 0xD2: struct.Struct(">i"), 0xD3: struct.Struct(">q"),
}  # fmt: skip

# Width of the length, by lead byte.
_STRINGS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_ARRAYS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        taken = self.data[self.at : self.at + length]
        if len(taken) < length:
            raise MalformedError(f"the message ends {length - len(taken)} bytes early")
        self.at += length
        return taken

    def length(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def value(self, depth: int) -> Any:
        lead = self.take(1)[0]
        if lead < 0x80:
            return lead
        if lead >= 0xE0:
            return lead - 0x100
        if lead in _NUMBERS:
            number = _NUMBERS[lead]
            return number.unpack(self.take(number.size))[0]
        if lead in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[lead]
        if 0xA0 <= lead < 0xC0:
            return self.take(lead & 31).decode("utf-8", "replace")
        if lead in _STRINGS:
            return self.take(self.length(_STRINGS[lead])).decode("utf-8", "replace")
        if lead in _BYTES:
            return self.take(self.length(_BYTES[lead]))
        if lead in _EXTENSIONS:
            self.take(self.length(_EXTENSIONS[lead]) + 1)
            return None
        if lead in _FIXED_EXTENSIONS:
            self.take(_FIXED_EXTENSIONS[lead] + 1)
            return None
        return self.collection(lead, depth + 1)

    def collection(self, lead: int, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise MalformedError(f"the message is nested more than {MAX_DEPTH} deep")
        if lead < 0x90 or lead in _MAPS:
            count = lead & 15 if lead < 0x90 else self.length(_MAPS[lead])
            return dict(self.entry(depth) for _ in range(self.checked(2 * count) // 2))
        if lead < 0xA0 or lead in _ARRAYS:
            count = lead & 15 if lead < 0xA0 else self.length(_ARRAYS[lead])
            return [self.value(depth) for _ in range(self.checked(count))]
        raise MalformedError(f"{lead:#x} is not the start of a value")

    def entry(self, depth: int) -> tuple[str | None, Any]:
        key = self.value(depth)
        return key if isinstance(key, str) else None, self.value(depth)

    def checked(self, count: int) -> int:
        """Returns a number of elements that fits into the rest of the message, of at least one byte each."""
        if count > len(self.data) - self.at:
            raise MalformedError(f"{count} elements do not fit into the message")
        return count
