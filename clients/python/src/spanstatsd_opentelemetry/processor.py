"""The span processor, which counts every span that ends."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from spanstatsd_opentelemetry import names
from spanstatsd_opentelemetry.accounting import Stats
from spanstatsd_opentelemetry.attributes import Attributes
from spanstatsd_opentelemetry.batches import ERROR, TOP_LEVEL, Key
from spanstatsd_opentelemetry.client import Client
from spanstatsd_opentelemetry.labels import ATTRIBUTES_BY_KIND, labels_of
from spanstatsd_opentelemetry.origin import origin_of, service_of
from spanstatsd_opentelemetry.sender import Config

log = logging.getLogger("spanstatsd")

Signature = tuple[Any, ...]

_SERVER: int = SpanKind.SERVER.value
_CONSUMER: int = SpanKind.CONSUMER.value
_ERROR: int = StatusCode.ERROR.value


class SpanstatsdSpanProcessor(SpanProcessor):
    """Publishes a snapshot of each span that ends, sampled or not, to the daemon.

    It never waits. A thread connects when the first span has ended. A forked child has a connection and counts of its own.
    Each tracer provider needs a processor of its own. Its sampler must be an AlwaysRecordSampler, or only sampled spans
    reach the processor, and its resource must be marked (see counted_resource) if a daemon receives exported spans too.
    """

    def __init__(self, config: Config | None = None) -> None:
        self._keep_names = names.keep_names()
        self._keys = KeyCache()
        self._resource = Resource.get_empty()
        self._has_failed = False
        self._client = Client(lambda: origin_of(self._resource), config)

    def on_end(self, span: ReadableSpan) -> None:
        try:
            # Members of Enum are hashed and looked up by slow functions in Python, their values are not.
            kind: int = span.kind._value_
            status: int = span.status.status_code._value_
            parent = span.parent
            is_root = parent is None or not parent.is_valid
            signature = _signature(span, kind, status, is_root)
            key = self._keys.get(signature)
            if key is None:
                key = self._key_of(span, signature, is_root)
            start, end = span.start_time or 0, span.end_time or 0
            flags = TOP_LEVEL if is_root or kind == _SERVER or kind == _CONSUMER else 0
            if status == _ERROR:
                flags |= ERROR
            self._resource = span.resource
            self._client.publish(key, end - start, end, flags)
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                log.exception("BUG: a span can't be counted")

    def _key_of(self, span: ReadableSpan, signature: Signature, is_root: bool) -> Key:
        """Returns the key of a span whose signature is not in the cache."""
        attributes = Attributes(span.attributes or {})
        name = names.Name(span.name)
        if not self._keep_names:
            name = names.by_convention(span.name, span.kind, attributes)
            if names.depends_on_path(span.name, span.kind, attributes):
                signature += name
                key = self._keys.get(signature)
                if key is not None:
                    return key
        service = service_of(span.resource)
        key = Key(labels_of(service, name, span.kind, is_root, span.status.status_code, attributes))
        self._keys.add(signature, key)
        return key

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Sends all spans that have ended, and requests that the daemon exports its statistics now. Returns True when all of
        the daemon's destinations have accepted them."""
        return self._client.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Sends all spans that have ended, and waits a few seconds at most until the daemon has settled them."""
        self._client.close()

    def stats(self) -> Stats:
        """Returns the numbers of spans by their fate, in this process."""
        return self._client.stats()


def _signature(span: ReadableSpan, kind: int, status: int, is_root: bool) -> Signature:
    """Returns what the labels of a span depend on. It is different for values that are equal in Python, but not as text."""
    in_labels = ATTRIBUTES_BY_KIND[kind]
    parts: list[Any] = [span.name, kind, status, is_root]
    append = parts.append
    for name, value in _attributes_of(span):
        if name in in_labels:
            append(name)
            type_of_value = value.__class__
            if type_of_value is str or type_of_value is int:
                append(value)
            elif type_of_value is bool or type_of_value is float:
                append((type_of_value, repr(value)))  # 1, 1.0 and True are equal, and so are 0.0 and -0.0
            else:
                append(type_of_value)  # the value is not part of a label
    return tuple(parts)


def _attributes_of(span: ReadableSpan) -> Iterable[tuple[str, Any]]:
    """Returns the attributes of an ended span. The SDK's public way to them costs as much as the rest of the processor,
    because it copies their names with a lock held."""
    try:
        values: Mapping[str, Any] = span._attributes._dict  # type: ignore[union-attr]
    except AttributeError:
        values = span.attributes or {}
    return values.items()


class KeyCache:
    """Keys by signature. When it is full, it forgets those that were not used since it was full for the last time."""

    MAX_KEYS = 2048  # per generation, of two
    MAX_CHARACTERS = 1 << 20

    def __init__(self) -> None:
        self._recent: dict[Signature, Key] = {}
        self._previous: dict[Signature, Key] = {}
        self._characters = 0  # in the signatures of recent

    def get(self, signature: Signature) -> Key | None:
        key = self._recent.get(signature)
        if key is None:
            key = self._previous.get(signature)
            if key is not None:
                self.add(signature, key)
        return key

    def add(self, signature: Signature, key: Key) -> None:
        """Stores a key. Threads may do it at the same time: at worst, a generation ends early."""
        if len(self._recent) >= self.MAX_KEYS or self._characters > self.MAX_CHARACTERS:
            self._recent, self._previous, self._characters = {}, self._recent, 0
        self._recent[signature] = key
        self._characters += sum(len(part) for part in signature if part.__class__ is str)
