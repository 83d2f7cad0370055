package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.data.LinkData;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import io.opentelemetry.sdk.trace.samplers.SamplingDecision;
import io.opentelemetry.sdk.trace.samplers.SamplingResult;
import java.util.List;
import org.junit.jupiter.api.Test;

class AlwaysRecordSamplerTest {
    private static final Attributes ATTRIBUTES = Attributes.of(AttributeKey.stringKey("why"), "because");
    private static final TraceState STATE = TraceState.builder().put("ot", "th:8").build();

    /** A sampler that always returns the same decision, with attributes and a tracestate. */
    private static final class Fixed implements Sampler, SamplingResult {
        private final SamplingDecision decision;

        Fixed(SamplingDecision decision) {
            this.decision = decision;
        }

        @Override
        public SamplingResult shouldSample(Context c, String id, String name, SpanKind kind, Attributes a, List<LinkData> l) {
            return this;
        }

        @Override
        public String getDescription() {
            return "Fixed";
        }

        @Override
        public SamplingDecision getDecision() {
            return decision;
        }

        @Override
        public Attributes getAttributes() {
            return ATTRIBUTES;
        }

        @Override
        public TraceState getUpdatedTraceState(TraceState parent) {
            return STATE;
        }
    }

    private static SamplingResult ask(Sampler sampler) {
        return sampler.shouldSample(Context.root(), "0af7651916cd43dd8448eb211c80319c", "x", SpanKind.SERVER, Attributes.empty(), List.of());
    }

    @Test
    void droppedSpan_isRecordedWithAttributes() {
        SamplingResult result = ask(AlwaysRecordSampler.of(new Fixed(SamplingDecision.DROP)));
        assertEquals(SamplingDecision.RECORD_ONLY, result.getDecision());
        assertSame(ATTRIBUTES, result.getAttributes());
        assertSame(STATE, result.getUpdatedTraceState(TraceState.getDefault()));
    }

    @Test
    void otherDecisions_areUnchanged() {
        for (SamplingDecision decision : new SamplingDecision[] {SamplingDecision.RECORD_AND_SAMPLE, SamplingDecision.RECORD_ONLY}) {
            Fixed sampler = new Fixed(decision);
            assertSame(sampler, ask(AlwaysRecordSampler.of(sampler)));
        }
        assertSame(SamplingResult.recordAndSample(), ask(AlwaysRecordSampler.of(Sampler.alwaysOn())));
    }

    @Test
    void droppedSpan_allocatesNothing() {
        assertSame(SamplingResult.recordOnly(), ask(AlwaysRecordSampler.of(Sampler.alwaysOff())));
    }

    @Test
    void wrap_twice_hasNoEffect() {
        Sampler once = AlwaysRecordSampler.of(Sampler.alwaysOff());
        assertSame(once, AlwaysRecordSampler.of(once));
        assertEquals("AlwaysRecord{AlwaysOffSampler}", once.getDescription());
    }
}
