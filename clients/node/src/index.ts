/**
 * Counts every span of OpenTelemetry's SDK, sampled or not, in the sidecar daemon spanstatsd.
 *
 * With node --import @spanstatsd/opentelemetry/register, the application needs no code. Otherwise, call install() once,
 * after the tracer provider is registered.
 *
 * Each finished span costs 17 bytes to the daemon's Unix socket, which the event loop writes. The application never waits.
 */
export type { Reason, Stats } from './accounting'
export { ERROR, Key, type Labels, TOP_LEVEL } from './batches'
export { Client } from './client'
export { COUNTED_ATTRIBUTES, EXPORTER_HEADERS, type InstallOptions, install } from './installation'
export { SpanstatsdSpanProcessor } from './processor'
export { AlwaysRecordSampler } from './sampler'
export type { Config } from './sender'
