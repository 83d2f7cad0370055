"""Labels and origins of spans, compared with the daemon's by the vectors that all clients share."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags, set_span_in_context

from spanstatsd_opentelemetry import names
from spanstatsd_opentelemetry.batches import Key
from spanstatsd_opentelemetry.origin import origin_of
from spanstatsd_opentelemetry.processor import KeyCache, SpanstatsdSpanProcessor
from spanstatsd_opentelemetry.sender import Config

VECTORS = json.loads((Path(__file__).parents[3] / "internal/rules/otel/testdata/labels.json").read_text())
REMOTE = SpanContext(1, 1, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class LastSpan(SpanProcessor):
    """Keeps the span that ended last."""

    last: ReadableSpan

    def on_end(self, span: ReadableSpan) -> None:
        self.last = span


def span_of(vector: Mapping[str, Any]) -> ReadableSpan:
    """Returns the span of a vector, ended. The SDK keeps the last value of a repeated attribute and the daemon the first,
    so only the first one is set."""
    read = {"string": str, "bool": lambda text: text == "true", "int": int, "double": float, "list": lambda _: ["x"]}
    attributes: dict[str, Any] = {}
    for name, kind, text in vector["attributes"]:
        attributes.setdefault(name, read[kind](text))
    ended = LastSpan()
    provider = TracerProvider(resource=Resource({"service.name": vector["service"]}), shutdown_on_exit=False)
    provider.add_span_processor(ended)
    parent = None if vector["root"] else set_span_in_context(NonRecordingSpan(REMOTE))
    span = provider.get_tracer("test").start_span(vector["span"], parent, SpanKind[vector["kind"].upper()], attributes)
    if vector["status"] != "unset":
        span.set_status(StatusCode[vector["status"].upper()])
    span.end()
    return ended.last


def counted(processor: SpanstatsdSpanProcessor, span: ReadableSpan) -> tuple[Key, int]:
    """Returns the key and the flags under which a processor counts a span."""
    published: list[tuple[Key, int]] = []
    processor._client.publish = lambda key, duration, end, flags: published.append((key, flags))  # type: ignore
    processor.on_end(span)
    assert not processor._has_failed
    return published[0]


def has_empty_key(vector: Mapping[str, Any]) -> bool:
    return any(not name for name, _, _ in vector["attributes"])


@pytest.fixture(scope="module", params=["convention", "as-sent"])
def processor(request: pytest.FixtureRequest) -> SpanstatsdSpanProcessor:
    os.environ[names.VARIABLE] = request.param
    try:
        return SpanstatsdSpanProcessor(Config(socket="/nonexistent/s"))
    finally:
        del os.environ[names.VARIABLE]


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["name"]) for vector in VECTORS])
def test_labels_equal_the_daemons(processor: SpanstatsdSpanProcessor, vector: Mapping[str, Any]) -> None:
    span = span_of(vector)
    want = vector["labels"]
    if processor._keep_names:
        want = vector.get("labels_as_sent", want)
    for _ in range(2):  # with an empty cache, and from the cache
        key, flags = counted(processor, span)
        assert key.encoded == Key(want).encoded
        if want is vector["labels"]:
            assert key.encoded.hex() == vector["key"]
        assert flags == vector["flags"]


def test_vectors_cover_both_rules_for_names() -> None:
    assert len(VECTORS) > 300
    assert len([vector for vector in VECTORS if "labels_as_sent" in vector]) > 20


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["name"].startswith("name of ")], ids=lambda v: v["name"])
def test_cache_distinguishes_paths(processor: SpanstatsdSpanProcessor, vector: Mapping[str, Any]) -> None:
    """Spans that differ only in attributes outside of labels get the names that they would get without a cache."""
    for name in (*names.PATH_ATTRIBUTES, "server.address", "net.peer.name"):
        for value in ("/carts/7", vector["span"], vector["span"].partition(" ")[2], "http://shop/items/1?x=2"):
            changed = {**vector, "attributes": [[name, "string", value], *vector["attributes"]]}
            span = span_of(changed)
            key, _ = counted(processor, span)
            processor._keys = KeyCache()
            assert counted(processor, span)[0].encoded == key.encoded


def test_public_access_to_attributes(processor: SpanstatsdSpanProcessor) -> None:
    """An SDK with other private fields is read through its public ones."""
    span = span_of(VECTORS[0])
    span._attributes = dict(span._attributes)
    assert (
        counted(processor, span)[0].encoded
        == Key(VECTORS[0].get("labels_as_sent" if processor._keep_names else "labels", VECTORS[0]["labels"])).encoded
    )


@pytest.mark.parametrize("value", [b"x", None, {"a": 1}, ["x"], (), float("nan"), -0.0, 1e300, "\ud800", "x" * 100_000])
def test_unusual_values(processor: SpanstatsdSpanProcessor, value: Any) -> None:
    ended = LastSpan()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ended)
    for name in ("http.route", "http.response.status_code", "db.query.text"):
        attributes = {"http.request.method": "GET", name: value}
        provider.get_tracer("test").start_span("GET /\ud800", kind=SpanKind.SERVER, attributes=attributes).end()
        assert counted(processor, ended.last)[0].encoded


def test_many_names(processor: SpanstatsdSpanProcessor) -> None:
    """Names with identifiers do not need memory without a limit."""
    span = span_of(VECTORS[0])
    for i in range(10_000):
        span._name = f"job {i} " + "x" * 1000
        counted(processor, span)
    cache = processor._keys
    for generation in (cache._recent, cache._previous):
        assert sum(len(part) for signature in generation for part in signature if isinstance(part, str)) < 1.1e6
        assert len(generation) <= KeyCache.MAX_KEYS


def test_invalid_rule_for_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(names.VARIABLE, "short")
    with pytest.raises(ValueError, match="'short' is not a rule"):
        SpanstatsdSpanProcessor()


def test_origin() -> None:
    resource = Resource(
        {
            "service.name": "shop", "service.version": "1.2", "deployment.environment": "old",
            "deployment.environment.name": "prod", "service.instance.id": "i-1", "telemetry.sdk.language": "python",
            "telemetry.sdk.version": "1.40.0", "host.name": "h" * 300, "process.command": "shop",
        }
    )  # fmt: skip
    assert origin_of(resource) == {
        "service": "shop", "version": "1.2", "env": "prod", "runtime_id": "i-1", "lang": "python",
        "tracer_version": "otlp-1.40.0", "host": "h" * 204,
    }  # fmt: skip
    assert origin_of(Resource.get_empty()) == {"service": "unknown_service", "tracer_version": "otlp-"}
