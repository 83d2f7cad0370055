/** The sampler with the SDK: the inner sampler decides, and unsampled spans are recorded with all that they have. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTraceState, ROOT_CONTEXT } from '@opentelemetry/api'
import { AlwaysOffSampler, BasicTracerProvider, SamplingDecision } from '@opentelemetry/sdk-trace-base'
import { AlwaysRecordSampler } from '../dist/index.js'

function spanWith(inner) {
  const provider = new BasicTracerProvider({ sampler: new AlwaysRecordSampler(inner) })
  return provider.getTracer('test').startSpan('GET', { attributes: { 'http.route': '/carts' } }, ROOT_CONTEXT)
}

for (const decision of [SamplingDecision.NOT_RECORD, SamplingDecision.RECORD, SamplingDecision.RECORD_AND_SAMPLED]) {
  test(`the inner sampler decides ${SamplingDecision[decision]}`, () => {
    const traceState = createTraceState('ot=th:8')
    const inner = { shouldSample: () => ({ decision, attributes: { rule: 'r1' }, traceState }), toString: () => 'own' }
    const span = spanWith(inner)
    assert(span.isRecording())
    assert.equal(span.spanContext().traceFlags, decision === SamplingDecision.RECORD_AND_SAMPLED ? 1 : 0)
    assert.equal(span.spanContext().traceState.serialize(), 'ot=th:8')
    assert.deepEqual({ ...span.attributes }, { 'http.route': '/carts', rule: 'r1' })
  })
}

test('attributes at the start remain', () => {
  assert.deepEqual({ ...spanWith(new AlwaysOffSampler()).attributes }, { 'http.route': '/carts' })
})

test('the description names the inner sampler', () => {
  assert.equal(String(new AlwaysRecordSampler(new AlwaysOffSampler())), 'AlwaysRecord{AlwaysOffSampler}')
})
