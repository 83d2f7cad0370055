from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBasedTraceIdRatio,
    Sampler,
    SamplingResult,
)
from opentelemetry.trace import TraceState

from spanstatsd_opentelemetry.sampler import AlwaysRecordSampler


class Deciding(Sampler):
    """Decides as told, with an attribute and a tracestate of its own."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision

    def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
        return SamplingResult(self.decision, {"inner": 1, "given": "inner"}, TraceState([("ot", "th:c")]))

    def get_description(self) -> str:
        return "Deciding"


class Ended(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def end_span(sampler: Sampler) -> ReadableSpan:
    ended = Ended()
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    provider.add_span_processor(ended)
    provider.get_tracer("test").start_span("GET /", attributes={"started": "with", "given": "outer"}).end()
    (span,) = ended.spans
    return span


@pytest.mark.parametrize("decision", list(Decision))
def test_inner_sampler_decides(decision: Decision) -> None:
    span = end_span(AlwaysRecordSampler(Deciding(decision)))
    assert span.context.trace_flags.sampled == (decision is Decision.RECORD_AND_SAMPLE)
    assert span.context.trace_state.to_header() == "ot=th:c"
    assert span.attributes["inner"] == 1 and span.attributes["given"] == "inner"
    assert span.attributes.get("started") == ("with" if decision is Decision.DROP else None)


@pytest.mark.parametrize("inner", [ALWAYS_OFF, ALWAYS_ON, ParentBasedTraceIdRatio(0)])
def test_attributes_at_start_remain(inner: Sampler) -> None:
    assert dict(end_span(AlwaysRecordSampler(inner)).attributes) == {"started": "with", "given": "outer"}


def test_description() -> None:
    assert AlwaysRecordSampler(ALWAYS_OFF).get_description() == "AlwaysRecord{AlwaysOffSampler}"
