package io.github.spanstatsd.opentelemetry;

import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.data.LinkData;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import io.opentelemetry.sdk.trace.samplers.SamplingDecision;
import io.opentelemetry.sdk.trace.samplers.SamplingResult;
import java.util.List;

/**
 * A sampler that has every span recorded, as OpenTelemetry's specification calls AlwaysRecord: what
 * the sampler within drops is recorded and not exported, and nobody downstream takes it for sampled.
 * All else is as that one says.
 */
public final class AlwaysRecordSampler implements Sampler {
    private final Sampler sampler;

    private AlwaysRecordSampler(Sampler sampler) {
        this.sampler = sampler;
    }

    /** Wraps a sampler, unless it is such a one. */
    public static Sampler of(Sampler sampler) {
        return sampler instanceof AlwaysRecordSampler ? sampler : new AlwaysRecordSampler(sampler);
    }

    @Override
    public SamplingResult shouldSample(
            Context parent, String traceId, String name, SpanKind kind, Attributes attributes, List<LinkData> links) {
        SamplingResult result = sampler.shouldSample(parent, traceId, name, kind, attributes, links);
        if (result.getDecision() != SamplingDecision.DROP) {
            return result;
        }
        return result == SamplingResult.drop() ? SamplingResult.recordOnly() : new Recorded(result);
    }

    @Override
    public String getDescription() {
        return "AlwaysRecord{" + sampler.getDescription() + "}";
    }

    @Override
    public String toString() {
        return getDescription();
    }

    /** A result that said to drop a span, with the attributes and the tracestate that it has. */
    private static final class Recorded implements SamplingResult {
        private final SamplingResult dropped;

        private Recorded(SamplingResult dropped) {
            this.dropped = dropped;
        }

        @Override
        public SamplingDecision getDecision() {
            return SamplingDecision.RECORD_ONLY;
        }

        @Override
        public Attributes getAttributes() {
            return dropped.getAttributes();
        }

        @Override
        public TraceState getUpdatedTraceState(TraceState parent) {
            return dropped.getUpdatedTraceState(parent);
        }
    }
}
