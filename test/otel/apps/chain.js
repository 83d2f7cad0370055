// The counterpart of apps/chain with the OpenTelemetry SDK for Node: its composite samplers and its
// HTTP instrumentation.
const { createHash, randomBytes } = require('crypto')
const { context, propagation, trace } = require('@opentelemetry/api')
const { AsyncLocalStorageContextManager } = require('@opentelemetry/context-async-hooks')
const { W3CTraceContextPropagator } = require('@opentelemetry/core')
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto')
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { TracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace')
const sampling = require('@opentelemetry/sampler-composite')

// The n-th trace started here has the first 16 bytes of the SHA-256 of n (in decimal) as its ID.
let begun = 0
const idGenerator = {
  generateTraceId: () => createHash('sha256').update(String(begun++)).digest('hex').slice(0, 32),
  generateSpanId: () => randomBytes(8).toString('hex'),
}

const [kind, rate] = process.env.SAMPLER.split(':')
const own = sampling.createComposableProbabilitySampler(Number(rate))
const provider = new TracerProvider({
  idGenerator,
  resource: resourceFromAttributes({ 'service.name': process.env.OTEL_SERVICE_NAME }),
  sampler: sampling.createCompositeSampler(
    kind === 'parent' ? sampling.createComposableParentThresholdSampler(own) : own),
  spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter(), maxQueueSize: 100000 })],
})
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
propagation.setGlobalPropagator(new W3CTraceContextPropagator())
trace.setGlobalTracerProvider(provider)
new HttpInstrumentation().setTracerProvider(provider)

const http = require('http') // instrumented
const next = process.env.NEXT_URL
const agent = new http.Agent({ keepAlive: true })
const server = http.createServer((req, res) => {
  if (!next) return res.end()
  http.get(next, { agent }, answer => {
    answer.resume()
    answer.on('end', () => res.writeHead(answer.statusCode).end())
  })
})
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
process.stdin.resume()
process.stdin.on('end', async () => {
  server.close()
  server.closeIdleConnections()
  await provider.shutdown()
  process.exit()
})
