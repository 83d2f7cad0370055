"""Hands the same spans to one daemon through the span processor, and to another over OTLP."""

import json
import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags, set_span_in_context
from spanstatsd_opentelemetry import Config, SpanstatsdSpanProcessor

socket, otlp, vectors = sys.argv[1:]
resource = Resource(
    {
        "service.name": "shop",
        "service.version": "1.2",
        "deployment.environment.name": "test",
        "telemetry.sdk.language": "python",
    }
)
provider = TracerProvider(resource=resource)
processor = SpanstatsdSpanProcessor(Config(socket=socket))
provider.add_span_processor(processor)
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"http://{otlp}/v1/traces"), max_queue_size=10_000))
remote = set_span_in_context(NonRecordingSpan(SpanContext(1, 1, True, TraceFlags(TraceFlags.SAMPLED))))
read = {"string": str, "bool": lambda text: text == "true", "int": int, "double": float, "list": lambda _: ["x"]}
spans = 0
with open(vectors) as file:
    for vector in json.load(file):
        attributes = {name: read[kind](text) for name, kind, text in vector["attributes"] if name}
        for _ in range(3):
            span = provider.get_tracer("test").start_span(
                vector["span"], None if vector["root"] else remote, SpanKind[vector["kind"].upper()], attributes
            )
            if vector["status"] != "unset":
                span.set_status(StatusCode[vector["status"].upper()])
            span.end()
            spans += 1
provider.shutdown()
assert processor.stats().sent == spans
print(spans)
