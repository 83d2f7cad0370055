/** Labels and origins of spans, compared with the daemon's by the vectors that all clients share. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
import { Key } from '../dist/batches.js'
import { PATH_ATTRIBUTES } from '../dist/names.js'
import { originOf } from '../dist/origin.js'
import { KeyCache, SpanstatsdSpanProcessor } from '../dist/processor.js'

const VECTORS = JSON.parse(
  readFileSync(new URL('../../../internal/rules/otel/testdata/labels.json', import.meta.url), 'utf8'),
)
const REMOTE = trace.setSpanContext(ROOT_CONTEXT, {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  isRemote: true,
  traceFlags: 1,
})
const READ = { string: (text) => text, bool: (text) => text === 'true', int: Number, double: Number, list: () => ['x'] }

/** Returns an ended span. */
function ended(service, name, kind, isRoot, attributes, status = 'UNSET') {
  let last
  const keep = { onStart() {}, onEnd: (span) => (last = span), forceFlush: async () => {}, shutdown: async () => {} }
  const resource = resourceFromAttributes({ 'service.name': service })
  const tracer = new BasicTracerProvider({ resource, spanProcessors: [keep] }).getTracer('test')
  const span = tracer.startSpan(name, { kind, attributes }, isRoot ? ROOT_CONTEXT : REMOTE)
  if (status !== 'UNSET') span.setStatus({ code: SpanStatusCode[status] })
  span.end()
  return last
}

/** Returns the span of a vector. The SDK keeps the last value of a repeated attribute and the daemon the first. */
function spanOf(vector) {
  const attributes = {}
  for (const [name, kind, text] of vector.attributes) {
    if (!(name in attributes)) attributes[name] = READ[kind](text)
  }
  const kind = SpanKind[vector.kind.toUpperCase()]
  return ended(vector.service, vector.span, kind, vector.root, attributes, vector.status.toUpperCase())
}

function processorOf(rule) {
  process.env.SPANSTATSD_SPAN_NAMES = rule
  try {
    return new SpanstatsdSpanProcessor({ socket: '/nonexistent/s' })
  } finally {
    delete process.env.SPANSTATSD_SPAN_NAMES
  }
}

/** Returns the key and the flags under which a processor counts a span. */
function counted(processor, span) {
  let published
  processor.client.publish = (key, _duration, _end, flags) => (published = [key, flags])
  processor.onEnd(span)
  assert(!processor.hasFailed)
  return published
}

for (const rule of ['convention', 'as-sent']) {
  const processor = processorOf(rule)
  for (const vector of VECTORS) {
    test(`labels (${rule}): ${vector.name}`, () => {
      const span = spanOf(vector)
      const want = (rule === 'as-sent' && vector.labels_as_sent) || vector.labels
      for (let i = 0; i < 2; i++) {
        // with an empty cache, and from the cache
        const [key, flags] = counted(processor, span)
        assert.equal(key.encoded.toString('hex'), new Key(want).encoded.toString('hex'))
        if (want === vector.labels) assert.equal(key.encoded.toString('hex'), vector.key)
        assert.equal(flags, vector.flags)
      }
    })
  }

  test(`the cache distinguishes paths (${rule})`, () => {
    for (const vector of VECTORS.filter((vector) => vector.name.startsWith('name of '))) {
      for (const name of [...PATH_ATTRIBUTES, 'server.address', 'net.peer.name']) {
        for (const value of ['/carts/7', vector.span, vector.span.split(' ')[1] ?? '', 'http://shop/items/1?x=2']) {
          const span = spanOf({ ...vector, attributes: [[name, 'string', value], ...vector.attributes] })
          const [key] = counted(processor, span)
          processor.keys = new KeyCache()
          assert.deepEqual(counted(processor, span)[0].encoded, key.encoded)
        }
      }
    }
  })
}

test('vectors cover both rules for names', () => {
  assert(VECTORS.length > 300)
  assert(VECTORS.filter((vector) => vector.labels_as_sent).length > 20)
})

test('unusual values', () => {
  const processor = processorOf('convention')
  const values = [null, undefined, { a: 1 }, ['x'], [], Number.NaN, -0, 1e300, 1n, '\ud800', 'x'.repeat(100_000)]
  for (const value of values) {
    for (const name of ['http.route', 'http.response.status_code', 'db.query.text', 'constructor', '__proto__']) {
      const span = ended('shop', 'GET /\ud800', SpanKind.SERVER, true, { 'http.request.method': 'GET' })
      span.attributes[name] = value
      assert(counted(processor, span)[0].encoded.length > 0)
    }
  }
})

test('names with identifiers do not need memory without a limit', () => {
  const processor = processorOf('convention')
  for (let i = 0; i < 10_000; i++) {
    counted(processor, ended('shop', `job ${i} ${'x'.repeat(1000)}`, SpanKind.INTERNAL, true, {}))
  }
  assert(processor.keys.size.characters < 1.1e6)
  assert(processor.keys.size.nodes <= KeyCache.MAX_NODES + 100)
})

test('invalid rule for names', () => {
  assert.throws(() => processorOf('short'), /'short' is not a rule/)
})

test('origin', () => {
  const resource = resourceFromAttributes({
    'service.name': 'shop',
    'service.version': '1.2',
    'deployment.environment': 'old',
    'deployment.environment.name': 'prod',
    'service.instance.id': Promise.resolve('i-1'),
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': '2.12.1',
    'host.name': 'h'.repeat(300),
    'process.command': 'shop',
  })
  assert.deepEqual(originOf(resource), {
    service: 'shop',
    version: '1.2',
    env: 'prod',
    lang: 'nodejs',
    tracer_version: 'otlp-2.12.1',
    host: 'h'.repeat(204),
  })
  assert.deepEqual(originOf(resourceFromAttributes({})), { service: 'unknown_service', tracer_version: 'otlp-' })
})
