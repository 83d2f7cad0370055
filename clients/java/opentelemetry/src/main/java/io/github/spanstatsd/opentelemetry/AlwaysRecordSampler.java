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
 * A sampler that makes the SDK record every span, called AlwaysRecord in OpenTelemetry's
 * specification: spans dropped by the wrapped sampler are recorded but not exported, and not
 * propagated as sampled. Everything else is decided by the wrapped sampler.
 */
public final class AlwaysRecordSampler implements Sampler {
    private final Sampler sampler;

    private AlwaysRecordSampler(Sampler sampler) {
        this.sampler = sampler;
    }

    /** Wraps a sampler, unless it is already wrapped. */
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

    /** Replaces a result that drops the span, with the same attributes and tracestate. */
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
