# The counterpart of apps/chain with the OpenTelemetry SDK for Python: its composite samplers and its
# instrumentation of Flask and requests.
import hashlib
import itertools
import os
import random
import sys
import threading

import flask
import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.flask import FlaskInstrumentor
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace import _sampling_experimental as sampling
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Sampler
from werkzeug.serving import make_server


class Ids(IdGenerator):
    """The n-th trace that begins here has the first 16 bytes of SHA-256 of n in decimal as its id."""

    def __init__(self):
        self.begun = itertools.count()

    def generate_trace_id(self):
        return int.from_bytes(hashlib.sha256(b"%d" % next(self.begun)).digest()[:16], "big")

    def generate_span_id(self):
        return random.getrandbits(63) + 1

    def is_trace_id_random(self):
        return True


class Told(Sampler):
    """Tells a sampler the tracestate of the parent. This SDK leaves it out: opentelemetry-python, #5578."""

    def __init__(self, own):
        self.own = own

    def should_sample(self, parent_context, *args, **more):
        state = trace.get_current_span(parent_context).get_span_context().trace_state
        return self.own.should_sample(parent_context, *args, **more, trace_state=state)

    def get_description(self):
        return self.own.get_description()


def sampler():
    kind, rate = os.environ["SAMPLER"].split(":")
    own = sampling.composable_traceid_ratio_based(float(rate))
    if kind == "parent":
        own = sampling.composable_parent_threshold(own)
    return Told(sampling.composite_sampler(own))


provider = TracerProvider(sampler=sampler(), id_generator=Ids())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
app = flask.Flask(__name__)
FlaskInstrumentor().instrument_app(app)
RequestsInstrumentor().instrument()
NEXT = os.environ.get("NEXT_URL")


@app.get("/orders/<int:number>")
def order(number):
    return "", requests.get(NEXT).status_code if NEXT else 200


server = make_server("127.0.0.1", 0, app, threaded=True)
threading.Thread(target=server.serve_forever).start()
print("listening on %d" % server.server_port, flush=True)
sys.stdin.read()
server.shutdown()
provider.shutdown()
