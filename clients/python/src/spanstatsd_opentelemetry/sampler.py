"""A sampler that lets the SDK record the spans that another sampler drops."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes


class AlwaysRecordSampler(Sampler):
    """Records every span, and samples those that the inner sampler samples.

    Spans that the inner sampler drops reach span processors, but no exporter. They keep the attributes that they are
    started with, and the tracestate of the inner sampler. (The SDK's own AlwaysRecordSampler loses the attributes.)
    """

    def __init__(self, inner: Sampler) -> None:
        self._inner = inner

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        result = self._inner.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        if result.decision is not Decision.DROP:
            return result
        # The attributes of a span are those of the result, and samplers that drop a span return none.
        all_attributes = {**(attributes or {}), **(result.attributes or {})}
        return SamplingResult(Decision.RECORD_ONLY, all_attributes, result.trace_state)

    def get_description(self) -> str:
        return f"AlwaysRecord{{{self._inner.get_description()}}}"
