"""Reads attributes of a span as texts, like the daemon does for OTLP (internal/rules/otel/attributes.go)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}

# gRPC status codes by name. Some instrumentations write them without underscores.
_GRPC_NAMES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_GRPC_CODES = {name: str(code) for code, name in enumerate(_GRPC_NAMES)}
_GRPC_CODES.update({name.replace("_", ""): code for name, code in list(_GRPC_CODES.items())})
_GRPC_CODES["CANCELED"] = "1"


class Attributes:
    """The attributes of one span. Where several names are given, the first one that the span has counts."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def has(self, *names: str) -> bool:
        """Reports whether the span has one of the attributes, even if it is empty."""
        return any(name in self._values for name in names)

    def text(self, *names: str) -> str:
        """Returns the value of an attribute, or an empty text."""
        for name in names:
            if name in self._values:
                return text_of(self._values[name])
        return ""

    def first_text(self, *names: str) -> str:
        """Returns the first value that is not empty, or an empty text."""
        for name in names:
            text = self.text(name)
            if text:
                return text
        return ""

    def is_true(self, *names: str) -> bool:
        """Reports whether one of the attributes is true."""
        return any(self._values.get(name) is True or self._values.get(name) == "true" for name in names)

    def http_status(self) -> int:
        """Returns the HTTP status code, or 0."""
        for name in ("http.response.status_code", "http.status_code"):
            if name in self._values:
                return _status_of(self._values[name])
        return 0

    def grpc_status(self) -> str:
        """Returns the gRPC status code in decimal digits, or an empty text. The current attribute has other meanings in
        other RPC systems."""
        name = "rpc.grpc.status_code"
        if name not in self._values and (self.text("rpc.system.name") or self.text("rpc.system")) == "grpc":
            name = "rpc.response.status_code"
        text = self.text(name)
        if text.isascii() and text.isdigit() and int(text) < 1 << 32:
            return str(int(text))
        return _GRPC_CODES.get(text.removeprefix("StatusCode.").upper(), "")


def text_of(value: Any) -> str:
    """Returns a value of an attribute as text, like protobuf's JSON format. Lists and maps are empty."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _text_of_float(value)
    return ""


def _text_of_float(number: float) -> str:
    """Formats a number with the fewest digits, and with an exponent only if it is very large or very small."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    decimal = Decimal(float.__repr__(number)).normalize()
    if number == 0 or 1e-6 <= abs(number) < 1e21:
        return format(decimal, "f")
    sign, digits, _ = decimal.as_tuple()
    fraction = "".join(map(str, digits[1:]))
    exponent = decimal.adjusted()
    return f"{'-' if sign else ''}{digits[0]}{'.' + fraction if fraction else ''}e{exponent:+}"


def _status_of(value: Any) -> int:
    """Returns a status code that is a number or a text, or 0."""
    number: float = 0
    if isinstance(value, bool):
        return 0
    if isinstance(value, (int, float)):
        number = value
    elif isinstance(value, str) and _NUMBER.fullmatch(value):
        number = int(value) if value.isascii() and value.isdigit() else float(value)
    is_status = 0 <= number < 1 << 32 and number == int(number)
    return int(number) if is_status else 0


def lower(text: str) -> str:
    """Returns a text with ASCII letters in lower case."""
    return text.translate(_LOWER)
