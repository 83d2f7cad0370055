"""Switches counting on for a tracer provider."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from spanstatsd_opentelemetry.processor import SpanstatsdSpanProcessor
from spanstatsd_opentelemetry.sampler import AlwaysRecordSampler
from spanstatsd_opentelemetry.sender import Config

# Headers for OTLP exporters of traces: a daemon that receives their requests does not count the spans again. In lower
# case, as gRPC requires.
EXPORTER_HEADERS = {"datadog-client-computed-stats": "yes"}

# The same as an attribute of a resource, for a Datadog agent that gets the spans from a Collector, which removes headers.
COUNTED = "_dd.stats_computed"

_processors: weakref.WeakKeyDictionary[TracerProvider, SpanstatsdSpanProcessor] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def counted_resource(resource: Resource) -> Resource:
    """Returns a resource that marks exported spans as counted for a Datadog agent."""
    return resource.merge(Resource({COUNTED: "true"}))


def install(
    provider: trace.TracerProvider | None = None,
    config: Config | None = None,
    meter_provider: MeterProvider | None = None,
) -> SpanstatsdSpanProcessor:
    """Counts every span of a tracer provider, by default the global one: adds a processor, wraps the sampler, and marks the
    resource (see counted_resource). The metric spanstatsd.client.spans accounts for the spans, if a meter provider is there.
    Call it before the application starts. A second call for a provider returns the same processor.

    An exporter to a daemon must have the EXPORTER_HEADERS, or the daemon counts sampled spans twice."""
    provider = _of_sdk(provider or trace.get_tracer_provider())
    with _lock:
        processor = _processors.get(provider)
        if processor is None:
            processor = SpanstatsdSpanProcessor(config)
            _add(processor, provider, meter_provider or metrics.get_meter_provider())
    return processor


def prepare() -> SpanstatsdSpanProcessor:
    """Returns a processor for install_prepared. Raises an exception if this process can't be counted. It must be called
    before anything is marked as counted, or spans that are marked and not counted would be missing."""
    _mark(TracerProvider(shutdown_on_exit=False))
    return SpanstatsdSpanProcessor()


def install_prepared(processor: SpanstatsdSpanProcessor) -> None:
    """Counts every span of the global tracer provider."""
    provider = _of_sdk(trace.get_tracer_provider())
    with _lock:
        _add(processor, provider, metrics.get_meter_provider())


def _add(processor: SpanstatsdSpanProcessor, provider: TracerProvider, meter_provider: MeterProvider) -> None:
    _mark(provider)
    _record_all(provider)
    provider.add_span_processor(processor)
    _processors[provider] = processor
    _observe(processor, meter_provider)


def _of_sdk(provider: trace.TracerProvider) -> TracerProvider:
    if not isinstance(provider, TracerProvider):
        raise TypeError(
            f"count spans: {type(provider).__name__} is not a tracer provider of OpenTelemetry's SDK; set one up first"
        )
    return provider


def _mark(provider: TracerProvider) -> None:
    """Marks the resource of a provider, which is already set up. Raises RuntimeError if this SDK keeps it elsewhere."""
    resource = counted_resource(provider.resource)
    provider._resource = resource
    if provider.resource is not resource:
        raise RuntimeError(
            "this version of OpenTelemetry's SDK is not supported; pass counted_resource(...) to TracerProvider, and add "
            "SpanstatsdSpanProcessor() and AlwaysRecordSampler(...) to it"
        )
    for tracer in _tracers(provider):
        tracer.resource = resource


def _record_all(provider: TracerProvider) -> None:
    provider.sampler = AlwaysRecordSampler(provider.sampler)
    for tracer in _tracers(provider):
        tracer.sampler = provider.sampler


def _tracers(provider: TracerProvider) -> Iterable[Any]:
    """Returns the tracers that a provider has made already, as far as this version of the SDK knows them."""
    tracers = getattr(provider, "_tracers", {})
    return list(tracers.values()) if isinstance(tracers, dict) else []


def _observe(processor: SpanstatsdSpanProcessor, provider: MeterProvider) -> None:
    """Registers the metric spanstatsd.client.spans."""
    reference = weakref.ref(processor)

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        processor = reference()
        if processor is None:
            return
        stats = processor.stats()
        yield Observation(stats.published, {"result": "published"})
        for result, spans in (("refused", stats.refused), ("lost", stats.lost)):
            for reason, count in spans.items():
                yield Observation(count, {"result": result, "reason": reason})

    provider.get_meter("spanstatsd_opentelemetry").create_observable_counter(
        "spanstatsd.client.spans",
        [observe],
        "{span}",
        "Ended spans: published (passed to the client), refused before that, or lost after it.",
    )
