/** Switches counting on for a tracer provider. */
import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api'
import type { Sampler } from '@opentelemetry/sdk-trace-base'
import { REASONS } from './accounting'
import { SpanstatsdSpanProcessor } from './processor'
import { AlwaysRecordSampler } from './sampler'
import type { Config } from './sender'

/**
 * Headers for OTLP exporters of traces: a daemon that receives their requests does not count the spans again. In lower
 * case, as gRPC requires.
 */
export const EXPORTER_HEADERS = { 'datadog-client-computed-stats': 'yes' } as const

/**
 * The same as attributes of a resource, for a Datadog agent that gets the spans from a Collector, which removes headers.
 */
export const COUNTED_ATTRIBUTES = { '_dd.stats_computed': 'true' } as const

export interface InstallOptions {
  /** By default the global one. */
  tracerProvider?: TracerProvider
  /** Of the metric spanstatsd.client.spans; by default the global one. */
  meterProvider?: MeterProvider
  config?: Partial<Config>
}

/** Fields of the SDK that no public method changes after a provider is made: 2.0 has _config, 2.2 has _tracerOptions. */
interface Provider {
  _activeSpanProcessor: { _spanProcessors: unknown[] }
  _tracerOptions?: { sampler: Sampler }
  _config?: { sampler: Sampler }
  _tracers?: Map<string, { _sampler: Sampler }>
  _resource: { _rawAttributes: [string, unknown][]; _memoizedAttributes?: unknown }
}

const installed = new WeakMap<object, SpanstatsdSpanProcessor>()

/**
 * Counts every span of a tracer provider: adds a processor, wraps the sampler, and marks the resource. The metric
 * spanstatsd.client.spans accounts for the spans, if a meter provider is there. Call it after the provider is registered,
 * and before the application starts. A second call for a provider returns the same processor.
 *
 * An exporter to a daemon must have the EXPORTER_HEADERS, or the daemon counts sampled spans twice.
 */
export function install(options: InstallOptions = {}): SpanstatsdSpanProcessor {
  const provider = withoutProxy(options.tracerProvider ?? trace.getTracerProvider())
  let processor = installed.get(provider)
  if (processor === undefined) {
    const fields = fieldsOf(provider)
    processor = new SpanstatsdSpanProcessor(options.config)
    add(processor, fields)
    installed.set(provider, processor)
    observe(processor, options.meterProvider ?? metrics.getMeterProvider())
  }
  return processor
}

/** Removes all other processors of a provider. */
export function removeProcessors(provider: TracerProvider): void {
  const processors = fieldsOf(withoutProxy(provider))._activeSpanProcessor._spanProcessors
  for (const processor of processors.splice(0)) void (processor as SpanstatsdSpanProcessor).shutdown().catch(() => {})
}

function withoutProxy(provider: TracerProvider): TracerProvider {
  const { getDelegate } = provider as { getDelegate?: () => TracerProvider }
  return getDelegate ? getDelegate.call(provider) : provider
}

/**
 * Returns the provider if it is one of the SDK with the expected fields. Its class is not tested, because an application
 * can have several copies of the SDK.
 */
function fieldsOf(provider: TracerProvider): Provider {
  const fields = provider as unknown as Provider
  const hasSampler = fields._tracerOptions?.sampler ?? fields._config?.sampler
  if (
    !hasSampler ||
    !Array.isArray(fields._activeSpanProcessor?._spanProcessors) ||
    !Array.isArray(fields._resource?._rawAttributes)
  ) {
    throw new TypeError(
      `count spans: ${provider?.constructor?.name} is not a tracer provider of OpenTelemetry's SDK 2.x; set one up ` +
        'first, or pass SpanstatsdSpanProcessor and AlwaysRecordSampler to yours',
    )
  }
  return fields
}

function add(processor: SpanstatsdSpanProcessor, provider: Provider): void {
  for (const options of [provider._tracerOptions, provider._config]) {
    if (options?.sampler) options.sampler = new AlwaysRecordSampler(options.sampler)
  }
  for (const tracer of provider._tracers?.values() ?? []) tracer._sampler = new AlwaysRecordSampler(tracer._sampler)
  provider._activeSpanProcessor._spanProcessors.push(processor)
  provider._resource._rawAttributes.push(...Object.entries(COUNTED_ATTRIBUTES))
  provider._resource._memoizedAttributes = undefined
}

/** Registers the metric spanstatsd.client.spans. */
function observe(processor: SpanstatsdSpanProcessor, provider: MeterProvider): void {
  provider
    .getMeter('@spanstatsd/opentelemetry')
    .createObservableCounter('spanstatsd.client.spans', {
      unit: '{span}',
      description: 'Ended spans: published (passed to the client), refused before that, or lost after it.',
    })
    .addCallback((result) => {
      const { published, refused, lost } = processor.stats()
      result.observe(published, { result: 'published' })
      for (const reason of REASONS) {
        result.observe(refused[reason], { result: 'refused', reason })
        result.observe(lost[reason], { result: 'lost', reason })
      }
    })
}
