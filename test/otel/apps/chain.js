// One of several services that call one another, under OpenTelemetry's SDK for JavaScript and its
// composite samplers. apps/chain says what it does, and what its variables say.
const http = require('http')
const crypto = require('crypto')
const { trace, SpanKind, ROOT_CONTEXT } = require('@opentelemetry/api')
const { W3CTraceContextPropagator } = require('@opentelemetry/core')
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const sampling = require('@opentelemetry/sampler-composite')
const { BatchSpanProcessor, RandomIdGenerator, TracerProvider } = require('@opentelemetry/sdk-trace')

const next = process.env.NEXT_URL
const propagator = new W3CTraceContextPropagator()
const agent = new http.Agent({ keepAlive: true })

let begun = 0
const ids = new RandomIdGenerator()
ids.generateTraceId = () => crypto.createHash('sha256').update(String(begun++)).digest('hex').slice(0, 32)

const [kind, rate] = process.env.SAMPLER.split(':')
let sampler = sampling.createComposableProbabilitySampler(Number(rate))
if (kind === 'parent') sampler = sampling.createComposableParentThresholdSampler(sampler)
const provider = new TracerProvider({
  sampler: sampling.createCompositeSampler(sampler),
  idGenerator: ids,
  resource: resourceFromAttributes({ 'service.name': process.env.OTEL_SERVICE_NAME }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(), {
    maxQueueSize: Number(process.env.OTEL_BSP_MAX_QUEUE_SIZE)
  })]
})
const tracer = provider.getTracer('chain')
const getter = { get: (carrier, key) => carrier[key], keys: Object.keys }
const setter = { set: (carrier, key, value) => { carrier[key] = value } }

const server = http.createServer((req, res) => {
  const parent = propagator.extract(ROOT_CONTEXT, req.headers, getter)
  const span = tracer.startSpan('answer', { kind: SpanKind.SERVER }, parent)
  const end = () => {
    span.end()
    res.end()
  }
  if (!next) return end()
  const within = trace.setSpan(parent, span)
  const ask = tracer.startSpan('ask', { kind: SpanKind.CLIENT }, within)
  const headers = {}
  propagator.inject(trace.setSpan(within, ask), headers, setter)
  http.get(next, { headers, agent }, answer => {
    answer.resume()
    answer.on('end', () => {
      ask.end()
      end()
    })
  })
})

server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
process.stdin.resume()
process.stdin.on('end', () => {
  agent.destroy()
  server.close()
  server.closeAllConnections()
  provider.shutdown()
})
