// Hands the same spans to one daemon through the span processor, and to another over OTLP.
const { readFileSync } = require('node:fs')
const { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } = require('@opentelemetry/api')
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { SpanstatsdSpanProcessor } = require('@spanstatsd/opentelemetry')

const [socket, otlp, vectors] = process.argv.slice(2)

const processor = new SpanstatsdSpanProcessor({ socket })
const exporter = new OTLPTraceExporter({ url: `http://${otlp}/v1/traces` })
const provider = new BasicTracerProvider({
  resource: resourceFromAttributes({
    'service.name': 'shop',
    'service.version': '1.2',
    'deployment.environment.name': 'test',
    'telemetry.sdk.language': 'nodejs',
  }),
  spanProcessors: [processor, new BatchSpanProcessor(exporter, { maxQueueSize: 10_000 })],
})
const remote = trace.setSpanContext(ROOT_CONTEXT, {
  traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', isRemote: true, traceFlags: 1,
})
const read = { string: String, bool: (text) => text === 'true', int: Number, double: Number, list: () => ['x'] }
let spans = 0
for (const vector of JSON.parse(readFileSync(vectors, 'utf8'))) {
  const attributes = {}
  for (const [name, kind, text] of vector.attributes) if (name) attributes[name] = read[kind](text)
  for (let i = 0; i < 3; i++) {
    const kind = SpanKind[vector.kind.toUpperCase()]
    const span = provider.getTracer('test').startSpan(vector.span, { kind, attributes }, vector.root ? ROOT_CONTEXT : remote)
    if (vector.status !== 'unset') span.setStatus({ code: SpanStatusCode[vector.status.toUpperCase()] })
    span.end()
    spans++
  }
}
provider.shutdown().then(() => {
  if (processor.stats().sent !== spans) throw new Error(`${processor.stats().sent} of ${spans} spans are sent`)
  console.log(spans)
})
