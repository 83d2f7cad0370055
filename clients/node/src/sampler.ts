/** A sampler that lets the SDK record the spans that another sampler drops. */
import type { Sampler, SamplingResult } from '@opentelemetry/sdk-trace-base'

// Values of SamplingDecision, which belongs to the SDK. The application may have several copies of that.
const NOT_RECORD = 0
const RECORD = 1

/**
 * Records every span, and samples those that the inner sampler samples.
 *
 * Spans that the inner sampler drops reach span processors, but no exporter. They keep the attributes that they are
 * started with, and the attributes and the tracestate of the inner sampler.
 */
export class AlwaysRecordSampler implements Sampler {
  constructor(private readonly inner: Sampler) {}

  shouldSample(...span: Parameters<Sampler['shouldSample']>): SamplingResult {
    const result = this.inner.shouldSample(...span)
    return result.decision === NOT_RECORD ? { ...result, decision: RECORD } : result
  }

  toString(): string {
    return `AlwaysRecord{${this.inner}}`
  }
}
