/** The encoder and the decoder, compared with the daemon's own by the vectors that all clients share. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Definitions, Key, Packer } from '../dist/batches.js'
import * as messages from '../dist/messages.js'
import { MalformedError, pack, unpack } from '../dist/msgpack.js'

const VECTORS = JSON.parse(
  readFileSync(new URL('../../../internal/wire/testdata/vectors.json', import.meta.url), 'utf8'),
)
const READERS = new Map([
  [messages.WELCOME, messages.readWelcome],
  [messages.FEATURES, messages.readFeatures],
  [messages.FLUSH, messages.readFlush],
  [messages.BYE, messages.readBye],
])

function vectors(...types) {
  const found = VECTORS.filter((vector) => types.includes(vector.type))
  assert(found.length > 0)
  return found
}

function messageOf(vector) {
  return messages.split(Buffer.from(vector.frame, 'hex').subarray(4))
}

for (const vector of vectors('welcome')) {
  test(`welcome: ${vector.name}`, () => {
    const welcome = messages.readWelcome(messageOf(vector)[1])
    const want = vector.meaning
    assert.equal(welcome.daemon, want.daemon)
    assert.equal(welcome.maxFrame, want.max_frame)
    assert.equal(welcome.maxBatch, want.max_batch)
    assert.equal(welcome.maxKeys, want.max_keys)
    assert.equal(welcome.settled, want.settled ?? false)
    assert.equal(welcome.interval, want.interval ?? 0)
    assert.equal(welcome.token, want.token ?? '')
    assert.deepEqual(welcome.earlier, want.earlier ?? [])
    assert.equal(welcome.features.stats, want.features.stats)
    assert.deepEqual(welcome.features.peerTags, want.features.peer_tags)
  })
}

for (const vector of vectors('features')) {
  test(`features: ${vector.name}`, () => {
    const { features, settled } = messages.readFeatures(messageOf(vector)[1])
    const want = vector.meaning
    assert.equal(settled, want.settled ?? 0)
    assert.equal(features.stats, want.stats)
    assert.deepEqual(features.spanKinds, want.span_kinds)
    assert.equal(features.obfuscationVersion, want.obfuscation_version)
  })
}

for (const vector of vectors('flush', 'bye')) {
  test(`other response: ${vector.name}`, () => {
    const [kind, body] = messageOf(vector)
    const response = READERS.get(kind)(body)
    for (const [name, want] of Object.entries(vector.meaning)) assert.deepEqual(response[name], want)
  })
}

for (const vector of VECTORS.filter((vector) => vector.malformed)) {
  test(`malformed: ${vector.name}`, () => {
    // A message that the daemon would not send is rejected, or is of a type that clients do not read.
    let message
    try {
      message = messageOf(vector)
    } catch (error) {
      assert(error instanceof MalformedError, error.stack)
      return
    }
    const read = READERS.get(message[0])
    if (read) assert.throws(() => read(message[1]), MalformedError)
  })
}

for (const vector of vectors('hello').filter((vector) => vector.canonical)) {
  test(`hello: ${vector.name}`, () => {
    const { client, origin, earlier } = vector.meaning
    const [, ours] = unpack(messages.hello(client, origin, earlier).subarray(4))
    const [, theirs] = messageOf(vector)
    assert.deepEqual(ours.get('origin'), theirs.get('origin'))
    assert.equal(ours.get('earlier'), theirs.get('earlier'))
  })
}

test('lost, flush and bye', () => {
  const frames = new Map(VECTORS.map(({ name, frame }) => [name, frame]))
  assert.equal(messages.lost({ buffer_full: 1200, closed: 2 ** 40 }).toString('hex'), frames.get('lost'))
  assert.equal(messages.flush(42).toString('hex'), frames.get('flush_request'))
  assert.equal(messages.bye('exit').toString('hex'), frames.get('bye'))
})

test('keys are the same bytes as the daemon finds them by', () => {
  let compared = 0
  for (const vector of vectors('spans').filter((vector) => vector.canonical)) {
    const [, rows] = messageOf(vector)
    for (const [i, { key }] of vector.meaning.snapshots.entries()) {
      if (!key || rows[i][0].length > 6000) continue
      const { span_kind: kind, ...labels } = key
      assert.deepEqual(new Key(kind === undefined ? labels : { ...labels, kind }).encoded, rows[i][0])
      compared++
    }
  }
  assert(compared > 0)
})

test('an unknown label', () => {
  assert.throws(() => new Key({ resorce: 'GET /' }), /resorce is not a label/)
})

test('long keys are cut', () => {
  const tags = Array.from({ length: 500 }, (_, i) => `a${String(i).padStart(3, '0')}:${'x'.repeat(900)}`)
  const { encoded } = new Key({ service: 'shop', resource: 'r'.repeat(100_000), peer_tags: tags })
  assert(encoded.length < 20 << 10)
  const labels = unpack(encoded)
  assert.equal(labels[2], 'r'.repeat(5004))
  assert.equal(labels[7].length, 64)
})

test('batches of any spans', () => {
  // Each batch can be read after the definitions that it needs, whatever the numbers and lengths of keys are.
  const batches = []
  const packer = new Packer((batch) => batches.push(batch))
  const want = []
  const add = (
    key,
    duration,
    end,
    flags,
    wantDuration = duration,
    wantEnd = BigInt(end[0]) * 10n ** 9n + BigInt(end[1]),
  ) => {
    packer.add(key, duration, end, flags)
    want.push([key.encoded.toString('hex'), wantDuration, wantEnd, flags])
  }
  const keys = []
  for (let i = 0; i < 3000; i++) {
    const resource = `GET /${i % 1500}${'x'.repeat(i % 100 === 0 ? 8000 : 0)}` // some keys are sent whole
    keys.push(new Key({ service: 'shop', operation: 'http.request', resource }))
    add(keys[i], i * 1e7, [1_700_000_000 + i, 999_999_999 - i], i % 4)
  }
  add(keys[1], -5, [-7, -7], 2, 0, 0n) // by a careless application
  add(keys[1], Number.NaN, [Number.NaN, 3], 2, 0, 3n)
  add(keys[1], undefined, [5, 0.5], 2, 0, 5_000_000_000n)
  add(keys[1], 2 ** 60, [1e12, 1], 2, Number.MAX_SAFE_INTEGER, 1n)
  packer.seal()

  const definitions = new Definitions()
  const numbered = new Map()
  const got = []
  for (const batch of batches) {
    let bytes = definitions.complete(batch)
    while (bytes.length > 0) {
      const end = 4 + bytes.readUInt32BE(0)
      assert(end <= 64 << 10)
      const [kind, rows] = unpack(bytes.subarray(4, end))
      bytes = bytes.subarray(end)
      if (kind === messages.DEFINE) {
        for (const [number, key] of rows) numbered.set(number, key)
        continue
      }
      assert(rows.length <= 256)
      for (const [key, ...rest] of rows) {
        got.push([(Buffer.isBuffer(key) ? key : numbered.get(key)).toString('hex'), ...rest])
      }
    }
  }
  assert.equal(got.length, want.length)
  for (const [i, [key, duration, end, flags]] of want.entries()) {
    assert.deepEqual(got[i], [key, duration, Number(end), flags])
  }
})

test('ends of spans are exact', () => {
  const key = new Key({ service: 'shop' })
  for (const end of [
    [0, 0],
    [0, 1],
    [1_700_000_000, 123_456_789],
    [65_535, 999_999_999],
    [65_536, 0],
    [4_102_444_800, 1],
  ]) {
    let frame
    const packer = new Packer((batch) => {
      frame = batch.frame
    })
    packer.add(key, 1, end, 0)
    packer.seal()
    assert.equal(frame.readBigUInt64BE(frame.length - 9), BigInt(end[0]) * 10n ** 9n + BigInt(end[1]))
  }
})

test('values of msgpack', () => {
  const values = [
    null,
    true,
    0,
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    2 ** 32,
    2 ** 50,
    '',
    'ä'.repeat(20),
    'x'.repeat(300),
  ]
  values.push('x'.repeat(70_000), Buffer.alloc(300), Buffer.alloc(70_000), Array(20).fill(1), Array(70_000).fill(null))
  for (const value of values) assert.deepEqual(unpack(pack(value)), value)
})
