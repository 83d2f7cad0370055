# One of several services that call one another, under OpenTelemetry's SDK for Python and its
# composite samplers. apps/chain says what it does, and what its variables say.
import hashlib
import os
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace import _sampling_experimental as sampling
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

NEXT = os.environ.get("NEXT_URL")
propagator = TraceContextTextMapPropagator()


class Ids(RandomIdGenerator):
    lock = threading.Lock()
    begun = 0

    def generate_trace_id(self):
        with self.lock:
            number, self.begun = self.begun, self.begun + 1
        return int.from_bytes(hashlib.sha256(b"%d" % number).digest()[:16], "big")


kind, rate = os.environ["SAMPLER"].split(":")
sampler = sampling.composable_traceid_ratio_based(float(rate))
if kind == "parent":
    sampler = sampling.composable_parent_threshold(sampler)
provider = TracerProvider(sampler=sampling.composite_sampler(sampler), id_generator=Ids())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("chain")


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        parent = propagator.extract(dict((name.lower(), value) for name, value in self.headers.items()))
        with tracer.start_as_current_span("answer", parent, trace.SpanKind.SERVER):
            if NEXT:
                with tracer.start_as_current_span("ask", kind=trace.SpanKind.CLIENT):
                    headers = {}
                    propagator.inject(headers)
                    urllib.request.urlopen(urllib.request.Request(NEXT, headers=headers)).read()
        # The answer goes out behind the span, so no span is open once users have their answers.
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
server.daemon_threads = True  # connections may stay open
threading.Thread(target=server.serve_forever).start()
print("listening on %d" % server.server_port, flush=True)
sys.stdin.read()
server.shutdown()
provider.shutdown()
