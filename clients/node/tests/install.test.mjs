/** Programs that install the processor in every way, and end in every way. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { unpack } from '../dist/msgpack.js'
import { eventually, FakeDaemon } from './fake_daemon.mjs'

const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const REGISTER = '@spanstatsd/opentelemetry/register'

let folder // with programs, and the packages of this one

before(() => {
  folder = mkdtempSync('/tmp/spanstatsd-programs')
  mkdirSync(join(folder, 'node_modules'))
  for (const scope of ['@opentelemetry', '@protobufjs', '@grpc', '@js-sdsl', '@types']) {
    symlinkSync(join(PACKAGE, 'node_modules', scope), join(folder, 'node_modules', scope))
  }
  const own = join(folder, 'node_modules/@spanstatsd/opentelemetry')
  for (const part of ['dist', 'esm', 'package.json']) cpSync(join(PACKAGE, part), join(own, part), { recursive: true })
  symlinkSync(join(PACKAGE, 'node_modules'), join(own, 'node_modules'))
})

after(() => rmSync(folder, { recursive: true }))

/** Runs a program, and returns its output and exit code when it has ended. */
function run(socket, name, source, { flags = [], env = {} } = {}) {
  const path = join(folder, name)
  writeFileSync(path, source)
  return runFile(socket, path, { flags, env })
}

function runFile(socket, path, { flags = [], env = {} } = {}) {
  return new Promise((resolve) => {
    let output = ''
    const child = spawn(process.execPath, [...flags, path], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        SPANSTATSD_SOCKET: socket,
        OTEL_SERVICE_NAME: 'shop',
        OTEL_METRICS_EXPORTER: 'none',
        OTEL_LOGS_EXPORTER: 'none',
        ...env,
      },
    })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
    const timer = setTimeout(() => child.kill('SIGKILL'), 30_000)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      resolve({ output, code, signal })
    })
  })
}

function testWithDaemon(name, call) {
  test(name, async () => {
    const daemon = await FakeDaemon.start()
    try {
      await call(daemon)
    } finally {
      daemon.stop()
    }
  })
}

/** Returns the resources (names of spans) of all received spans, sorted. */
function namesOf(daemon) {
  return daemon.spans.map(([key]) => unpack(key)[2]).sort()
}

async function checkSpans(daemon, { output, code }, spans) {
  assert.equal(code, 0, output)
  await eventually(() => daemon.peers.length > 0 && daemon.peers.every((peer) => peer.hasEnded))
  assert.equal(daemon.spans.length, spans, output)
}

const PROVIDER_ESM = `
import { trace } from '@opentelemetry/api'
import { AlwaysOffSampler, BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
import { install } from '@spanstatsd/opentelemetry'
const provider = new BasicTracerProvider({ sampler: new AlwaysOffSampler() })
provider.getTracer('early') // made before the sampler is wrapped
trace.setGlobalTracerProvider(provider)
const processor = install()
const publish = (n) => { for (let i = 0; i < n; i++) provider.getTracer('early').startSpan('job').end() }
`
const PROVIDER_CJS = `
const { trace } = require('@opentelemetry/api')
const { AlwaysOffSampler, BasicTracerProvider } = require('@opentelemetry/sdk-trace-base')
const { install } = require('@spanstatsd/opentelemetry')
trace.setGlobalTracerProvider(new BasicTracerProvider({ sampler: new AlwaysOffSampler() }))
const processor = install()
const publish = (n) => { for (let i = 0; i < n; i++) trace.getTracer('test').startSpan('job').end() }
`
const SDK_CJS = `
const { NodeSDK } = require('@opentelemetry/sdk-node')
const { trace } = require('@opentelemetry/api')
new NodeSDK().start()
const publish = (n) => { for (let i = 0; i < n; i++) trace.getTracer('test').startSpan('job').end() }
`

for (const [kind, name, provider] of [
  ['ES module', 'app.mjs', PROVIDER_ESM],
  ['CommonJS', 'app.cjs', PROVIDER_CJS],
]) {
  testWithDaemon(`a program that ends by itself, as ${kind}`, async (daemon) => {
    await checkSpans(daemon, await run(daemon.path, name, `${provider}publish(1000)`), 1000)
  })

  testWithDaemon(`a program that calls process.exit, as ${kind}`, async (daemon) => {
    const source = `${provider}publish(1); setTimeout(() => { publish(1000); process.exit(0) }, 500)`
    await checkSpans(daemon, await run(daemon.path, name, source), 1001)
    assert.equal(daemon.peers[0].bye, 'exit')
  })

  testWithDaemon(`a program that shuts its provider down, as ${kind}`, async (daemon) => {
    const source = `${provider}publish(1000); processor.shutdown().then(() => {
      if (processor.stats().unsettled || processor.stats().sent !== 1000) process.exit(1)
    })`
    await checkSpans(daemon, await run(daemon.path, name, source), 1000)
    assert.equal(daemon.peers[0].bye, 'closed')
  })
}

testWithDaemon('spans that process.exit loses before the first connection are named', async (daemon) => {
  const { output } = await run(daemon.path, 'exit.cjs', `${PROVIDER_CJS}publish(10); process.exit(0)`)
  assert.match(output, /10 spans could not be sent and are lost/)
})

testWithDaemon('without a daemon, a program ends at once and names its lost spans', async (daemon) => {
  const { output, code } = await run('/nonexistent/s', 'away.cjs', `${PROVIDER_CJS}publish(10)`)
  assert.equal(code, 0)
  assert.match(output, /10 spans could not be sent and are lost/)
  assert.equal(daemon.peers.length, 0)
})

testWithDaemon('ES modules and CommonJS share one processor', async (daemon) => {
  const source = `${PROVIDER_ESM}
import { createRequire } from 'node:module'
const other = createRequire(import.meta.url)('@spanstatsd/opentelemetry').install()
if (other !== processor) throw new Error('two processors')
publish(10)`
  await checkSpans(daemon, await run(daemon.path, 'both.mjs', source), 10)
})

testWithDaemon('worker threads have clients of their own', async (daemon) => {
  const source = `
const { isMainThread, Worker } = require('node:worker_threads')
${PROVIDER_CJS}
if (isMainThread) for (let i = 0; i < 3; i++) new Worker(__filename)
publish(100)`
  await checkSpans(daemon, await run(daemon.path, 'threads.cjs', source), 400)
  assert.equal(daemon.peers.length, 4)
})

testWithDaemon('cluster: each process has a client of its own', async (daemon) => {
  const source = `
const cluster = require('node:cluster')
${SDK_CJS}
if (cluster.isPrimary) for (let i = 0; i < 3; i++) cluster.fork()
else { publish(100); cluster.worker.disconnect() }`
  const env = { OTEL_TRACES_SAMPLER: 'always_off', OTEL_TRACES_EXPORTER: 'none' }
  await checkSpans(daemon, await run(daemon.path, 'cluster.cjs', source, { flags: ['--import', REGISTER], env }), 300)
  assert.equal(daemon.peers.length, 3)
})

for (const flag of ['--import', '--require']) {
  testWithDaemon(`${flag}: unsampled spans are counted, and exported ones are marked`, async (daemon) => {
    const received = []
    const collector = createServer((request, response) => {
      let body = Buffer.alloc(0)
      request.on('data', (data) => (body = Buffer.concat([body, data])))
      request.on('end', () => {
        received.push({ headers: request.headers, body: body.toString('latin1') })
        response.end()
      })
    })
    await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve))
    const env = {
      OTEL_TRACES_SAMPLER: 'traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.2',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.address().port}`,
      OTEL_EXPORTER_OTLP_HEADERS: 'a=1',
    }
    const source = `${SDK_CJS}publish(200)
if (process.env.OTEL_EXPORTER_OTLP_TRACES_HEADERS) throw new Error('children would mark their spans')
const provider = trace.getTracerProvider().getDelegate()
provider.forceFlush()`
    await checkSpans(daemon, await run(daemon.path, 'sdk.cjs', source, { flags: [flag, REGISTER], env }), 200)
    collector.close()
    assert(received.length > 0)
    for (const { headers, body } of received) {
      assert.equal(headers['datadog-client-computed-stats'], 'yes')
      assert.equal(headers.a, '1')
      assert(body.includes('_dd.stats_computed'))
    }
  })
}

testWithDaemon('--require of the SDK before --import of this package is refused', async (daemon) => {
  // Its exporter was made before, so its requests would not be marked, and the daemon would count them again.
  writeFileSync(join(folder, 'sdk-first.cjs'), SDK_CJS)
  const flags = ['--require', './sdk-first.cjs', '--import', REGISTER]
  const env = { OTEL_TRACES_EXPORTER: 'console' }
  const { output, code } = await run(daemon.path, 'late.cjs', `require('@opentelemetry/api')`, { flags, env })
  assert.equal(code, 0, output)
  assert.match(output, /are not counted.*load @spanstatsd\/opentelemetry\/register first/)
})

testWithDaemon('--require of this package before --import of the SDK', async (daemon) => {
  writeFileSync(
    join(folder, 'sdk-later.mjs'),
    `import { NodeSDK } from '@opentelemetry/sdk-node'; new NodeSDK().start()`,
  )
  const flags = ['--require', REGISTER, '--import', './sdk-later.mjs']
  const env = { OTEL_TRACES_EXPORTER: 'none' }
  const source = `require('@opentelemetry/api').trace.getTracer('test').startSpan('job').end()`
  await checkSpans(daemon, await run(daemon.path, 'order.cjs', source, { flags, env }), 1)
})

// A package of ES modules, and an instrumentation for it that makes a span of each call.
const INSTRUMENTED_SDK = `
import { trace } from '@opentelemetry/api'
import { InstrumentationBase, InstrumentationNodeModuleDefinition } from '@opentelemetry/instrumentation'
import { NodeSDK } from '@opentelemetry/sdk-node'
class JobInstrumentation extends InstrumentationBase {
  constructor() { super('job', '1.0.0', {}) }
  init() {
    return new InstrumentationNodeModuleDefinition('job', ['*'], (module) => {
      this._wrap(module, 'work', () => () => trace.getTracer('job').startSpan('work').end())
      return module
    })
  }
}
new NodeSDK({ instrumentations: [new JobInstrumentation()] }).start()`

for (const [name, program, flags] of [
  ['application.mjs', '', ['--import', './instrumented.mjs']],
  ['module/application.js', '', ['--import', './instrumented.mjs']],
  ['sdk-in-code.mjs', `import './instrumented.mjs'`, []],
]) {
  testWithDaemon(`${name}: modules that an ES module imports are instrumented`, async (daemon) => {
    mkdirSync(join(folder, 'node_modules/job'), { recursive: true })
    writeFileSync(join(folder, 'node_modules/job/package.json'), '{"version": "1.0.0", "exports": "./job.mjs"}')
    writeFileSync(join(folder, 'node_modules/job/job.mjs'), 'export function work() {}')
    mkdirSync(join(folder, 'module'), { recursive: true })
    writeFileSync(join(folder, 'module/package.json'), '{"type": "module"}')
    writeFileSync(join(folder, 'instrumented.mjs'), INSTRUMENTED_SDK)
    const source = `${program}
import { work } from 'job'
for (let i = 0; i < 10; i++) work()`
    const env = { OTEL_TRACES_EXPORTER: 'none' }
    await checkSpans(daemon, await run(daemon.path, name, source, { flags: ['--import', REGISTER, ...flags], env }), 10)
  })
}

testWithDaemon('the connection to the daemon makes no span', async (daemon) => {
  const source = `${SDK_CJS}
const { Socket } = require('node:net')
const { connect } = Socket.prototype
Socket.prototype.connect = function (...options) { // like OpenTelemetry's instrumentation of node:net
  publish(1)
  return connect.apply(this, options)
}
publish(10)`
  const options = { flags: ['--import', REGISTER], env: { OTEL_TRACES_EXPORTER: 'none' } }
  await checkSpans(daemon, await run(daemon.path, 'net.cjs', source, options), 10)
})

testWithDaemon('two copies of this package', async (daemon) => {
  const copy = join(folder, 'second-copy')
  for (const part of ['dist', 'package.json']) cpSync(join(PACKAGE, part), join(copy, part), { recursive: true })
  symlinkSync(join(PACKAGE, 'node_modules'), join(copy, 'node_modules'))
  const options = {
    flags: ['--import', REGISTER, '--require', './second-copy/dist/register.js'],
    env: { OTEL_TRACES_EXPORTER: 'none' },
  }
  const source = `${SDK_CJS}publish(10)
if (process.env.OTEL_EXPORTER_OTLP_TRACES_HEADERS) throw new Error('children would mark their spans')`
  await checkSpans(daemon, await run(daemon.path, 'twice.cjs', source, options), 10)
})

testWithDaemon('the exporter none: a provider is there, and exports nothing', async (daemon) => {
  const source = `${SDK_CJS}publish(10)
const { length } = trace.getTracerProvider().getDelegate()._activeSpanProcessor._spanProcessors
if (length !== 1 || process.env.OTEL_TRACES_EXPORTER !== 'none') throw new Error('an exporter is left')`
  const options = { flags: ['--import', REGISTER], env: { OTEL_TRACES_EXPORTER: 'none' } }
  await checkSpans(daemon, await run(daemon.path, 'none.cjs', source, options), 10)
})

testWithDaemon('a process without a signal handler that is terminated sends its spans', async (daemon) => {
  const source = `${SDK_CJS}publish(1) // connects
setTimeout(() => { publish(9); process.kill(process.pid, 'SIGTERM') }, 500)
setInterval(() => {}, 1000)`
  const options = { flags: ['--import', REGISTER], env: { OTEL_TRACES_EXPORTER: 'none' } }
  const { signal, output } = await run(daemon.path, 'term.cjs', source, options)
  assert.equal(signal, 'SIGTERM', output)
  assert.equal(daemon.spans.length, 10)
})

testWithDaemon('a bundle with a copy of the SDK and the API, and register outside of it', async (daemon) => {
  writeFileSync(
    join(folder, 'entry.cjs'),
    `
const { trace } = require('@opentelemetry/api')
const { AlwaysOffSampler, BasicTracerProvider } = require('@opentelemetry/sdk-trace-base')
trace.setGlobalTracerProvider(new BasicTracerProvider({ sampler: new AlwaysOffSampler() }))
for (let i = 0; i < 10; i++) trace.getTracer('test').startSpan('job').end()`,
  )
  const outfile = join(folder, 'bundle/app.cjs')
  await build({
    entryPoints: [join(folder, 'entry.cjs')],
    outfile,
    bundle: true,
    platform: 'node',
    minify: true,
    logLevel: 'error',
  })
  await checkSpans(daemon, await runFile(daemon.path, outfile, { flags: ['--import', REGISTER] }), 10)
})

for (const format of ['esm', 'cjs']) {
  testWithDaemon(`a bundle with everything, format ${format}`, async (daemon) => {
    const name = format === 'esm' ? 'entry-all.mjs' : 'entry-all.cjs'
    writeFileSync(join(folder, name), `${format === 'esm' ? PROVIDER_ESM : PROVIDER_CJS}publish(10)`)
    const outfile = join(folder, `bundle/all.${format === 'esm' ? 'mjs' : 'cjs'}`)
    const banner =
      format === 'esm'
        ? { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);` }
        : {}
    await build({
      entryPoints: [join(folder, name)],
      outfile,
      banner,
      format,
      bundle: true,
      platform: 'node',
      minify: true,
      logLevel: 'error',
    })
    await checkSpans(daemon, await runFile(daemon.path, outfile), 10)
  })
}

testWithDaemon('two copies of the SDK', async (daemon) => {
  for (const name of ['sdk-trace-base', 'sdk-trace']) {
    cpSync(join(PACKAGE, 'node_modules/@opentelemetry', name), join(folder, 'copy/node_modules/@opentelemetry', name), {
      recursive: true,
    })
  }
  const source = `${PROVIDER_CJS}
const copy = require('./copy/node_modules/@opentelemetry/sdk-trace-base')
if (copy.BasicTracerProvider === BasicTracerProvider) throw new Error('not a copy')
const other = new copy.BasicTracerProvider({ sampler: new copy.AlwaysOffSampler() })
install({ tracerProvider: other })
other.getTracer('test').startSpan('other').end()
publish(1)`
  await checkSpans(daemon, await run(daemon.path, 'copies.cjs', source), 2)
  assert.deepEqual(namesOf(daemon), ['job', 'other'])
})

testWithDaemon('metrics account for the spans', async (daemon) => {
  const source = `${PROVIDER_CJS.replace('install()', 'install({ meterProvider })').replace(
    'trace.set',
    `const { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } = require('@opentelemetry/sdk-metrics')
const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
const meterProvider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] })
trace.set`,
  )}
publish(7)
meterProvider.forceFlush().then(() => {
  const [metric] = exporter.getMetrics()[0].scopeMetrics[0].metrics
  console.log(metric.descriptor.name, metric.dataPoints.map((p) => [p.value, ...Object.values(p.attributes)].join(' ')).join(', '))
  return meterProvider.shutdown()
})`
  const { output } = await run(daemon.path, 'metrics.cjs', source)
  assert.match(output, /^spanstatsd.client.spans 7 published, 0 refused buffer_full, 0 lost buffer_full, /)
})

testWithDaemon("a provider that is not the SDK's, or none, is left alone", async (daemon) => {
  const source = `
const { install } = require('@spanstatsd/opentelemetry')
for (const options of [{}, { tracerProvider: { getTracer() {} } }]) {
  try { install(options) } catch (error) { console.log(error.message) }
}`
  const { output } = await run(daemon.path, 'foreign.cjs', source)
  assert.equal(output.match(/is not a tracer provider of OpenTelemetry's SDK/g)?.length, 2, output)
})

testWithDaemon('an invalid setting changes nothing', async (daemon) => {
  const env = { SPANSTATSD_SPAN_NAMES: 'short', OTEL_TRACES_EXPORTER: 'console' }
  const source = `${SDK_CJS}publish(1)
if (process.env.OTEL_EXPORTER_OTLP_TRACES_HEADERS) throw new Error('marked')
trace.getTracerProvider().getDelegate().forceFlush()`
  const { output, code } = await run(daemon.path, 'invalid.cjs', source, { flags: ['--import', REGISTER], env })
  assert.equal(code, 0, output)
  assert.match(output, /are not counted: .*'short' is not a rule/)
  assert.equal(daemon.peers.length, 0)
})
