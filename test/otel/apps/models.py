"""Calls models with the published OpenAI instrumentation, in front of a stand-in for the API.

It exports the spans, and then prints the points of the instrumentation's own metrics as JSON.
"""

import json
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

rnd = random.Random(7)


class API(BaseHTTPRequestHandler):
    """Answers each call with a random number of tokens. Every tenth call fails."""

    protocol_version = "HTTP/1.1"
    calls = 0

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        API.calls += 1
        if API.calls % 10 == 0:
            self.answer(400, {"error": {"message": "no", "type": "invalid_request_error"}})
            return
        usage = {"prompt_tokens": rnd.randrange(1, 100_000), "completion_tokens": rnd.randrange(4_000)}
        usage["total_tokens"] = sum(usage.values())
        message = {"role": "assistant", "content": "hello"}
        self.answer(200, {
            "id": f"chatcmpl-{API.calls}", "object": "chat.completion", "created": 1, "model": asked["model"] + "-2026-11-01",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage,
        })

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    api = ThreadingHTTPServer(("127.0.0.1", 0), API)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    tracers, reader = TracerProvider(), InMemoryMetricReader()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    OpenAIInstrumentor().instrument(
        tracer_provider=tracers, meter_provider=MeterProvider(metric_readers=[reader])
    )
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{api.server_port}/v1", api_key="none", max_retries=0)
    for number in range(200):
        try:
            client.chat.completions.create(
                model=f"gpt-{number % 3}", messages=[{"role": "user", "content": "hello"}]
            )
        except openai.BadRequestError:
            pass
    tracers.shutdown()
    points = []
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    points.append({
                        "metric": metric.name, "unit": metric.unit, "attributes": dict(point.attributes),
                        "sum": point.sum, "count": point.count,
                    })
    json.dump(points, sys.stdout)


main()
