// Measures the CPU time that a process needs for a span: recorded, recorded and counted with the span processor, and
// recorded and exported over OTLP. It repeats all three in turns, with a daemon as another process, and prints medians.
const { spawn } = require('node:child_process')
const { existsSync, mkdtempSync, rmSync } = require('node:fs')
const { join } = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const { ROOT_CONTEXT, SpanKind } = require('@opentelemetry/api')
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { AlwaysOffSampler, AlwaysOnSampler, BasicTracerProvider, BatchSpanProcessor, NoopSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { AlwaysRecordSampler, SpanstatsdSpanProcessor } = require('@spanstatsd/opentelemetry')

const ROUNDS = 9
const SPANS = 50_000
const OTLP = '127.0.0.1:24320'
const ROUTES = ['/carts/{id}', '/orders', '/orders/{id}', '/login', '/items/{id}', '/search']

const variants = {
  recorded: () => [new AlwaysOnSampler(), new NoopSpanProcessor()],
  'recorded and counted': (socket) => [new AlwaysRecordSampler(new AlwaysOffSampler()), new SpanstatsdSpanProcessor({ socket })],
  'recorded and exported': () => {
    // The limit is for flushing all spans at once, which fails with the default.
    const exporter = new OTLPTraceExporter({ url: `http://${OTLP}/v1/traces`, concurrencyLimit: 1e6 })
    return [new AlwaysOnSampler(), new BatchSpanProcessor(exporter, { maxQueueSize: 2 * SPANS })]
  },
}

// Returns the microseconds of CPU time per span, including the shutdown, which sends all buffered spans.
async function measure(variant, socket) {
  const [sampler, processor] = variant(socket)
  const resource = resourceFromAttributes({ 'service.name': 'shop' })
  const provider = new BasicTracerProvider({ sampler, resource, spanProcessors: [processor] })
  const tracer = provider.getTracer('cost')
  const before = process.cpuUsage()
  for (let i = 0; i < SPANS; i++) {
    const route = ROUTES[i % ROUTES.length]
    const attributes = {
      'http.request.method': 'GET', 'http.route': route, 'http.response.status_code': 200, 'url.path': '/carts/7',
      'url.scheme': 'http', 'user_agent.original': 'test', 'server.address': 'shop',
    }
    tracer.startSpan(`GET ${route}`, { kind: SpanKind.SERVER, attributes }, ROOT_CONTEXT).end()
  }
  await provider.shutdown()
  const { user, system } = process.cpuUsage(before)
  if (processor.stats && processor.stats().sent !== SPANS) throw new Error(JSON.stringify(processor.stats()))
  return (user + system) / SPANS
}

const median = (costs) => costs.sort((a, b) => a - b)[costs.length >> 1]

async function main() {
  const folder = mkdtempSync('/tmp/cost')
  const socket = join(folder, 's')
  const daemon = spawn(process.argv[2], [
    'run', '--socket', socket, '--otlp-addr', OTLP, '--prometheus', '--http-addr', '127.0.0.1:0', '--agent-url', 'off',
    '--log-level', 'error',
  ], { stdio: 'inherit' })
  const costs = Object.fromEntries(Object.keys(variants).map((name) => [name, []]))
  try {
    while (!existsSync(socket)) await sleep(50)
    for (let round = -1; round < ROUNDS; round++) {
      for (const [name, variant] of Object.entries(variants)) {
        const cost = await measure(variant, socket)
        if (round >= 0) costs[name].push(cost) // the first round warms up
      }
    }
  } finally {
    daemon.kill()
    rmSync(folder, { recursive: true })
  }
  console.log(`Node.js ${process.version}: ${ROUNDS} rounds of ${SPANS} spans of a server with seven attributes, in turns\n`)
  console.log('| in the application, µs of CPU a span | median | lowest to highest |\n| --- | --- | --- |')
  for (const [name, all] of Object.entries(costs)) {
    console.log(`| ${name} | ${median(all).toFixed(1)} | ${Math.min(...all).toFixed(1)} to ${Math.max(...all).toFixed(1)} |`)
  }
  const [base, counted, exported] = Object.values(costs).map(median)
  const ratio = (exported - base) / Math.max(counted - base, 0.001)
  console.log(`\nCounting adds 1/${ratio.toFixed(0)} of what exporting adds. Recorded and counted costs 1/${(exported / counted).toFixed(1)} ` +
    'of recorded and exported.')
}

main()
