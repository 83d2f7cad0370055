"""Measures the CPU time that a process needs for a span: recorded, recorded and counted with the span processor, and
recorded and exported over OTLP. It repeats all three in turns, with a daemon as another process, and prints medians."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from opentelemetry.trace import SpanKind
from spanstatsd_opentelemetry import AlwaysRecordSampler, Config, SpanstatsdSpanProcessor

ROUNDS = 9
SPANS = 10_000
OTLP = "127.0.0.1:24319"
ROUTES = ("/carts/{id}", "/orders", "/orders/{id}", "/login", "/items/{id}", "/search")
SHOP = Resource({"service.name": "shop"})


def recorded(socket):
    return ALWAYS_ON, SpanProcessor()


def counted(socket):
    return AlwaysRecordSampler(ALWAYS_OFF), SpanstatsdSpanProcessor(Config(socket=socket))


def exported(socket):
    exporter = OTLPSpanExporter(f"http://{OTLP}/v1/traces")
    return ALWAYS_ON, BatchSpanProcessor(exporter, max_queue_size=2 * SPANS)


def measure(variant, socket):
    """Returns the microseconds of CPU time per span, including the shutdown, which sends all buffered spans."""
    sampler, processor = variant(socket)
    provider = TracerProvider(sampler=sampler, resource=SHOP, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("cost")
    before = time.process_time()
    for i in range(SPANS):
        route = ROUTES[i % len(ROUTES)]
        tracer.start_span(
            f"GET {route}",
            kind=SpanKind.SERVER,
            attributes={
                "http.request.method": "GET", "http.route": route, "http.response.status_code": 200,
                "url.path": "/carts/7", "url.scheme": "http", "user_agent.original": "test", "server.address": "shop",
            },
        ).end()  # fmt: skip
    provider.shutdown()
    return (time.process_time() - before) / SPANS * 1e6


def main():
    with tempfile.TemporaryDirectory() as folder:
        socket = os.path.join(folder, "s")
        daemon = subprocess.Popen(
            [sys.argv[1], "run", "--socket", socket, "--otlp-addr", OTLP, "--prometheus", "--http-addr", "127.0.0.1:0",
             "--agent-url", "off", "--log-level", "error"]
        )  # fmt: skip
        try:
            while not os.path.exists(socket):
                time.sleep(0.05)
            variants = (recorded, counted, exported)
            costs = {variant: [] for variant in variants}
            for variant in variants:
                measure(variant, socket)  # warms up
            for _ in range(ROUNDS):
                for variant in variants:
                    costs[variant].append(measure(variant, socket))
        finally:
            daemon.terminate()
            daemon.wait()
    print(f"Python {sys.version.split()[0]}: {ROUNDS} rounds of {SPANS} spans of a server with seven attributes, in turns\n")
    print("| in the application, µs of CPU a span | median | lowest to highest |\n| --- | --- | --- |")
    for variant, name in ((recorded, ""), (counted, " and counted"), (exported, " and exported")):
        all_costs = costs[variant]
        print(f"| recorded{name} | {statistics.median(all_costs):.1f} | {min(all_costs):.1f} to {max(all_costs):.1f} |")
    base, with_counting, with_export = (statistics.median(costs[variant]) for variant in variants)
    ratio = (with_export - base) / max(with_counting - base, 0.001)
    print(f"\nCounting adds 1/{ratio:.0f} of what exporting adds. Recorded and counted costs 1/{with_export / with_counting:.1f} of "
          "recorded and exported.")  # fmt: skip


if __name__ == "__main__":
    main()
