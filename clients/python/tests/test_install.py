"""Counting switched on for a whole SDK."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_daemon import FakeDaemon, eventually
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

from spanstatsd_opentelemetry import (
    AlwaysRecordSampler,
    Config,
    SpanstatsdSpanProcessor,
    configurator,
    counted_resource,
    install,
)
from spanstatsd_opentelemetry.configurator import SpanstatsdConfigurator

SHOP = Resource({"service.name": "shop", "telemetry.sdk.language": "python"})


@pytest.fixture
def daemon() -> Iterator[FakeDaemon]:
    yield FakeDaemon()


def provider_of(sampler: Sampler) -> tuple[TracerProvider, InMemorySpanExporter]:
    provider = TracerProvider(sampler=sampler, resource=SHOP, shutdown_on_exit=False)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def test_every_span_is_counted(daemon: FakeDaemon) -> None:
    """Unsampled spans are counted and not exported, also those of tracers that existed before."""
    provider, exporter = provider_of(ALWAYS_OFF)
    early = provider.get_tracer("early")
    processor = install(provider, Config(socket=daemon.path))
    assert install(provider) is processor
    for tracer in (early, provider.get_tracer("late")):
        for _ in range(10):
            tracer.start_span("job", attributes={"db.system": "redis"}).end()
    provider.shutdown()
    has_tracers = isinstance(getattr(provider, "_tracers", None), dict)  # since 1.40
    assert len(daemon.spans) == (20 if has_tracers else 10)
    assert b"db.system.name:redis" in daemon.spans[0][0]
    assert daemon.peers[0].hello["origin"]["service"] == "shop"
    assert not exporter.get_finished_spans()
    stats = processor.stats()
    assert stats.sent == len(daemon.spans) and stats.buffered == 0


def test_exported_spans_are_marked(daemon: FakeDaemon) -> None:
    provider, exporter = provider_of(ALWAYS_ON)
    install(provider, Config(socket=daemon.path))
    provider.get_tracer("test").start_span("job").end()
    (span,) = exporter.get_finished_spans()
    assert dict(span.resource.attributes) == {**SHOP.attributes, "_dd.stats_computed": "true"}
    provider.shutdown()


def test_unknown_sdk_is_left_alone() -> None:
    """If the resource can't be marked, nothing is counted, so that nothing is counted twice."""

    class OtherProvider(TracerProvider):
        @property
        def resource(self) -> Resource:
            return SHOP

    provider = OtherProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    with pytest.raises(RuntimeError, match="not supported"):
        install(provider)
    assert provider.sampler is ALWAYS_OFF and not provider._active_span_processor._span_processors


def test_without_sdk() -> None:
    with pytest.raises(TypeError, match="set one up first"):
        install(trace.NoOpTracerProvider())


class OtherConfigurator:
    """The configurator of a distro, which sees the environment of exporters."""

    def configure(self, **kwargs: str) -> None:
        self.kwargs = kwargs
        self.headers = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS")


@pytest.mark.parametrize(
    ("traces_headers", "headers", "want"),
    [
        (None, None, "datadog-client-computed-stats=yes"),
        (None, "a=b", "a=b,datadog-client-computed-stats=yes"),
        ("c=d", "a=b", "c=d,datadog-client-computed-stats=yes"),
    ],
)
def test_configurator(
    monkeypatch: pytest.MonkeyPatch, traces_headers: str | None, headers: str | None, want: str
) -> None:
    """It uses the other configurator, whose exporters mark their requests, and restores the environment."""
    other = OtherConfigurator()
    monkeypatch.setattr(configurator, "_other_configurator", lambda: other)
    installed: list[SpanstatsdSpanProcessor] = []
    monkeypatch.setattr(configurator, "install_prepared", installed.append)
    for name, value in (("TRACES_HEADERS", traces_headers), ("HEADERS", headers)):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)
        if value is not None:
            monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
    SpanstatsdConfigurator().configure(auto_instrumentation_version="1")
    assert len(installed) == 1
    assert other.headers == want and other.kwargs == {"auto_instrumentation_version": "1"}
    assert os.environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") == traces_headers


def configure(monkeypatch: pytest.MonkeyPatch) -> tuple[OtherConfigurator, int]:
    """Returns the other configurator, and the number of processors that were installed."""
    other = OtherConfigurator()
    installed: list[SpanstatsdSpanProcessor] = []
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", raising=False)
    monkeypatch.setattr(configurator, "_other_configurator", lambda: other)
    monkeypatch.setattr(configurator, "install_prepared", installed.append)
    SpanstatsdConfigurator().configure()
    return other, len(installed)


@pytest.mark.parametrize("has_header", [False, True])
def test_configuration_by_file(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path, has_header: bool
) -> None:
    """With exporters from a file that do not mark their requests, nothing is counted."""
    file = tmp_path / "sdk.yaml"
    file.write_text("headers: [{name: Datadog-Client-Computed-Stats, value: yes}]" if has_header else "exporter:")
    monkeypatch.setenv("OTEL_CONFIG_FILE", str(file))
    _, installed = configure(monkeypatch)
    assert installed == has_header
    assert ("does not count" in caplog.text) != has_header


def test_nothing_is_marked_if_nothing_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPANSTATSD_SPAN_NAMES", "short")
    other, installed = configure(monkeypatch)
    assert installed == 0 and other.headers is None
    assert "'short' is not a rule for names" in caplog.text


def test_parts_by_hand(daemon: FakeDaemon) -> None:
    """The parts work without install, as the documentation shows."""
    processor = SpanstatsdSpanProcessor(Config(socket=daemon.path))
    provider = TracerProvider(
        resource=counted_resource(SHOP), sampler=AlwaysRecordSampler(ALWAYS_OFF), shutdown_on_exit=False
    )
    provider.add_span_processor(processor)
    provider.get_tracer("test").start_span("job").end()
    assert provider.force_flush()
    assert len(daemon.spans) == 1
    provider.shutdown()
    provider.get_tracer("test").start_span("job").end()
    assert processor.stats().refused["closed"] == 1


def test_metrics(daemon: FakeDaemon) -> None:
    reader = InMemoryMetricReader()
    provider, _ = provider_of(ALWAYS_OFF)
    install(provider, Config(socket=daemon.path), MeterProvider([reader], shutdown_on_exit=False))
    provider.get_tracer("test").start_span("job").end()
    (metric,) = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    values = {tuple(sorted(point.attributes.items())): point.value for point in metric.data.data_points}
    assert metric.name == "spanstatsd.client.spans"
    assert values[(("result", "published"),)] == 1
    assert values[(("reason", "buffer_full"), ("result", "refused"))] == 0
    provider.shutdown()


def test_child_has_its_own_resource(daemon: FakeDaemon) -> None:
    """After a fork, the SDK gives the child another service.instance.id, which the daemon gets from the child."""
    provider, _ = provider_of(ALWAYS_OFF)
    install(provider, Config(socket=daemon.path))
    tracer = provider.get_tracer("test")
    tracer.start_span("job").end()
    eventually(lambda: daemon.peers)
    child = os.fork()
    if child == 0:
        provider._resource = provider._resource.merge(Resource({"service.instance.id": "child"}))
        provider.get_tracer("other").start_span("job").end()
        provider.shutdown()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    provider.shutdown()
    origins = [peer.hello["origin"].get("runtime_id") for peer in daemon.peers]
    assert origins == [None, "child"] and len(daemon.spans) == 2


def test_end_of_program(daemon: FakeDaemon) -> None:
    """A program that ends normally loses no span: the SDK shuts down at the end of the interpreter."""
    code = (
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "import spanstatsd_opentelemetry\n"
        "trace.set_tracer_provider(TracerProvider())\n"
        "spanstatsd_opentelemetry.install()\n"
        "for _ in range(100): trace.get_tracer('test').start_span('job').end()\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
        "SPANSTATSD_SOCKET": daemon.path,
        "OTEL_TRACES_SAMPLER": "always_off",
    }
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30, env=environment)
    eventually(lambda: len(daemon.spans) == 100)
    assert daemon.peers[0].bye == "closed"
