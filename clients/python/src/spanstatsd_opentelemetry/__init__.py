"""Counts every span of OpenTelemetry's SDK, sampled or not, in the sidecar daemon spanstatsd.

Under opentelemetry-instrument, set OTEL_PYTHON_CONFIGURATOR=spanstatsd. Otherwise, call install() once:

    trace.set_tracer_provider(TracerProvider(...))
    spanstatsd_opentelemetry.install()

Each finished span costs 17 bytes to the daemon's Unix socket, which a thread writes. The application never waits. The
modules client and batches have a client for spans of other sources.
"""

from spanstatsd_opentelemetry.accounting import Stats
from spanstatsd_opentelemetry.batches import ERROR, TOP_LEVEL, Key
from spanstatsd_opentelemetry.client import Client
from spanstatsd_opentelemetry.installation import EXPORTER_HEADERS, counted_resource, install
from spanstatsd_opentelemetry.processor import SpanstatsdSpanProcessor
from spanstatsd_opentelemetry.sampler import AlwaysRecordSampler
from spanstatsd_opentelemetry.sender import Config

__all__ = [
    "ERROR",
    "EXPORTER_HEADERS",
    "TOP_LEVEL",
    "AlwaysRecordSampler",
    "Client",
    "Config",
    "Key",
    "SpanstatsdSpanProcessor",
    "Stats",
    "counted_resource",
    "install",
]
