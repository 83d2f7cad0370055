/** The client with a daemon that restarts, dies, hangs or is missing. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Packer } from '../dist/batches.js'
import { Client, ERROR, Key, TOP_LEVEL } from '../dist/index.js'
import { Kept } from '../dist/kept.js'
import * as messages from '../dist/messages.js'
import { Schedule } from '../dist/sender.js'
import { eventually, FakeDaemon, FEATURES, settleAndAnswer } from './fake_daemon.mjs'

const KEY = new Key({ service: 'shop', operation: 'http.request', resource: 'GET /' })
const ORIGIN = { service: 'shop', lang: 'nodejs' }
const NOW = [1_700_000_000, 5]

const warnings = mock.method(console, 'error', () => {})

function warned(text) {
  return warnings.mock.calls.some((call) => call.arguments[0].includes(text))
}

function clientOf(path, config) {
  return new Client(ORIGIN, { socket: path, maxAgeMillis: 20, maxBackoffMillis: 50, ...config })
}

/** Publishes spans with the durations first, first + 1 and so on. */
function publish(client, spans, first = 0) {
  for (let i = first; i < first + spans; i++) client.publish(KEY, i, NOW, TOP_LEVEL)
}

/** Publishes until a socket that is not read accepts nothing anymore. Returns the number of spans. */
async function fillSocket(client, first) {
  let offered = first
  let sent = 0
  let stalls = 0
  await eventually(() => {
    publish(client, 1000, offered)
    offered += 1000
    stalls = client.stats().sent === sent ? stalls + 1 : 0
    sent = client.stats().sent
    return stalls === 20
  })
  return offered
}

function sum(counts) {
  return Object.values(counts).reduce((total, n) => total + n, 0)
}

function checkBalance(stats, offered) {
  assert.equal(stats.published + sum(stats.refused), offered)
  assert.equal(stats.sent + stats.buffered + sum(stats.lost), stats.published)
  assert(stats.sent >= stats.unsettled + stats.unconfirmed + stats.ambiguous)
}

function testWithDaemon(name, run) {
  test(name, async () => {
    const daemon = await FakeDaemon.start()
    try {
      await run(daemon)
    } finally {
      daemon.stop()
    }
  })
}

testWithDaemon('spans arrive once', async (daemon) => {
  const client = clientOf(daemon.path)
  client.publish(KEY, 12, NOW, ERROR | TOP_LEVEL)
  publish(client, 5000)
  assert(await client.close())
  const [peer] = daemon.peers
  assert.deepEqual(peer.spans[0], [KEY.encoded, 12, Number(1_700_000_000_000_000_005n), 3])
  assert.deepEqual(
    peer.spans.slice(1).map((span) => span[1]),
    Array.from({ length: 5000 }, (_, i) => i),
  )
  assert.deepEqual([...peer.keys], [[0, KEY.encoded]])
  assert.deepEqual(Object.fromEntries(peer.hello.get('origin')), ORIGIN)
  assert(peer.hello.get('settled'))
  assert.equal(peer.bye, 'closed')
  const stats = client.stats()
  checkBalance(stats, 5001)
  assert.deepEqual([stats.sent, stats.unsettled, stats.connects], [5001, 0, 1])
})

testWithDaemon('each key gets its spans although there are more keys than numbers', async (daemon) => {
  const client = clientOf(daemon.path)
  const keys = Array.from({ length: 1500 }, (_, i) => new Key({ service: 'shop', resource: `GET /${i}` }))
  for (const key of [...keys, ...keys]) client.publish(key, 1, NOW)
  assert(await client.close())
  assert.deepEqual(
    daemon.spans.map((span) => span[0]),
    [...keys, ...keys].map((key) => key.encoded),
  )
})

testWithDaemon('flush', async (daemon) => {
  const client = clientOf(daemon.path, { maxAgeMillis: 60_000 })
  assert(await client.flush(1)) // nothing to do, and no connection
  publish(client, 10)
  assert(await client.flush(10_000))
  assert.equal(daemon.spans.length, 10)
  assert.equal(client.stats().unsettled, 0)
  daemon.onFlush = (peer, id) => peer.send(messages.FLUSH, { id, ok: false, error: 'the agent is away' })
  assert(!(await client.flush(10_000)))
  daemon.onFlush = () => {}
  assert(!(await client.flush(50)))
  await client.close()
  assert(!(await client.flush(1)))
})

testWithDaemon('a daemon that comes later', async (daemon) => {
  daemon.stop()
  const client = clientOf(daemon.path)
  publish(client, 100)
  await eventually(() => client.sender.isUnavailable)
  const later = await FakeDaemon.start(daemon.path)
  await eventually(() => later.spans.length === 100)
  assert(await client.close())
  later.stop()
})

test('without a daemon, spans are buffered for a while, and then refused', async () => {
  const client = clientOf('/nonexistent/s', { maxAwayMillis: 200 })
  publish(client, 100)
  await eventually(() => !client.publish(KEY, 1, NOW))
  publish(client, 10)
  assert.equal(client.stats().refused.disconnected, 11)
  const offered = client.stats().published + 11
  assert(!(await client.close()))
  const stats = client.stats()
  checkBalance(stats, offered)
  assert.equal(stats.lost.closed, stats.published)
  assert.equal(stats.buffered, 0)
  assert(!client.publish(KEY, 1, NOW))
  assert.equal(client.stats().refused.closed, 1)
})

test('a program that starts to publish late has the same time until a daemon must be there', async () => {
  const client = clientOf('/nonexistent/s', { maxAwayMillis: 500 })
  await sleep(600)
  publish(client, 1)
  await eventually(() => client.sender.isUnavailable)
  assert(client.publish(KEY, 1, NOW))
  await client.close()
})

testWithDaemon('a full buffer refuses spans, and the daemon gets a report', async (daemon) => {
  daemon.stop()
  const client = clientOf(daemon.path, { maxBuffer: 10_000 })
  publish(client, 12_500)
  const refused = client.stats().refused.buffer_full
  assert(refused > 0)
  const later = await FakeDaemon.start(daemon.path)
  await eventually(() => later.peers[0]?.lost.buffer_full === refused)
  assert(await client.close())
  checkBalance(client.stats(), 12_500)
  assert.equal(later.spans.length, client.stats().published)
  later.stop()
})

testWithDaemon('statistics that are not wanted', async (daemon) => {
  const client = clientOf(daemon.path)
  publish(client, 10)
  await eventually(() => daemon.spans.length === 10)
  daemon.peers[0].send(messages.FEATURES, { ...FEATURES, stats: false })
  await eventually(() => !client.publish(KEY, 1, NOW))
  daemon.peers[0].send(messages.FEATURES, FEATURES)
  await eventually(() => client.publish(KEY, 1, NOW))
  await client.close()
  const stats = client.stats()
  assert(stats.refused.not_wanted > 0)
  assert.deepEqual(daemon.peers[0].lost, { not_wanted: stats.refused.not_wanted + stats.lost.not_wanted })
  assert.equal(daemon.spans.length, stats.sent)
})

testWithDaemon('spans that a killed daemon delivered nowhere are resent, before new ones', async (daemon) => {
  daemon.onFlush = () => {}
  const client = clientOf(daemon.path)
  for (const batch of [0, 1, 2, 3]) {
    publish(client, 100, 100 * batch)
    await eventually(() => daemon.spans.length === 100 * (batch + 1))
  }
  const [first] = daemon.peers
  first.settle(100)
  await eventually(() => client.stats().unsettled === 300)
  daemon.welcome = { earlier: [100, 0, 200, 1, 400, 2] }
  daemon.onFlush = settleAndAnswer
  first.die()
  await eventually(() => daemon.peers[1]?.spans.length === 200)
  const second = daemon.peers[1]
  assert.equal(second.hello.get('earlier'), 'token-1')
  assert.deepEqual(second.spans, first.spans.slice(200))
  publish(client, 50, 400)
  assert(await client.close())
  const stats = client.stats()
  checkBalance(stats, 450)
  assert.deepEqual([stats.ambiguous, stats.unconfirmed, stats.unsettled, stats.sent], [100, 0, 0, 450])
  assert.deepEqual(second.lost, { ambiguous: 100 })
  assert.equal(second.spans.length, 250)
})

for (const saysBye of [false, true]) {
  testWithDaemon(`an outcome that the next daemon does not know, ${saysBye ? 'bye' : 'kill'}`, async (daemon) => {
    const client = clientOf(daemon.path)
    publish(client, 100)
    await eventually(() => daemon.spans.length === 100)
    if (saysBye) daemon.peers[0].send(messages.BYE, { reason: 'shutdown' })
    else daemon.peers[0].die()
    await eventually(() => client.stats().connects === 2 && client.stats().unsettled === 0)
    assert(await client.close())
    const stats = client.stats()
    assert.equal(stats.unconfirmed, saysBye ? 0 : 100)
    assert.equal(stats.sent, 100)
    assert.equal(daemon.spans.length, 100)
  })
}

testWithDaemon('a bye that a failed write hides', async (daemon) => {
  const client = clientOf(daemon.path)
  publish(client, 100)
  await eventually(() => daemon.spans.length === 100)
  daemon.peers[0].send(messages.BYE, { reason: 'shutdown' })
  daemon.peers[0].die()
  client.sender.connection.write(Buffer.from('cut off'), () => {}) // before the client can read the bye
  await eventually(() => client.stats().connects === 2 && client.stats().unsettled === 0)
  assert(await client.close())
  const stats = client.stats()
  assert.deepEqual([stats.ambiguous, stats.unconfirmed, stats.sent], [100, 0, 100])
  assert.deepEqual(daemon.peers[1].lost, { ambiguous: 100 })
})

testWithDaemon('while the predecessor shuts down, the client asks again with the same token', async (daemon) => {
  const client = clientOf(daemon.path)
  publish(client, 10)
  await eventually(() => daemon.spans.length === 10)
  const refused = []
  daemon.greet = (peer) => {
    if (refused.length === 3) {
      FakeDaemon.prototype.greet.call(daemon, peer)
      return
    }
    refused.push(peer.hello.get('earlier'))
    peer.send(messages.BYE, { reason: 'earlier_pending' })
    peer.socket.end()
  }
  daemon.welcome = { earlier: [0, 0, 10, 2] }
  daemon.peers[0].die()
  await eventually(() => daemon.spans.length === 20)
  assert.deepEqual(refused, ['token-1', 'token-1', 'token-1'])
  assert(await client.close())
})

testWithDaemon('a message that the socket accepted only in part is resent whole', async (daemon) => {
  const client = clientOf(daemon.path, { maxBuffer: 20_000 })
  publish(client, 1)
  await eventually(() => daemon.spans.length === 1)
  daemon.peers[0].socket.pause()
  const offered = await fillSocket(client, 1)
  daemon.welcome = { earlier: [0, 0] }
  daemon.peers[0].die()
  await eventually(() => client.stats().connects === 2)
  assert(await client.close(20_000))
  const stats = client.stats()
  checkBalance(stats, offered)
  const received = daemon.peers[1].spans.map((span) => span[1])
  assert.equal(received[0], 0)
  assert.deepEqual(
    received,
    [...new Set(received)].sort((a, b) => a - b),
  )
  assert.equal(stats.sent, received.length)
  assert.equal(stats.published, received.length)
})

testWithDaemon('a daemon that does not read delays neither publish nor close', async (daemon) => {
  const client = clientOf(daemon.path, { maxBuffer: 20_000 })
  publish(client, 1)
  await eventually(() => daemon.spans.length === 1)
  daemon.peers[0].socket.pause()
  await fillSocket(client, 1)
  assert(!(await client.close(300)))
  const stats = client.stats()
  checkBalance(stats, stats.published + sum(stats.refused))
  assert.equal(stats.buffered, 0)
  assert(stats.lost.closed > 0)
})

testWithDaemon('a daemon that sends no welcome does not delay close beyond its timeout', async (daemon) => {
  daemon.greet = () => {}
  const client = clientOf(daemon.path)
  publish(client, 10)
  await eventually(() => daemon.peers.length > 0)
  assert(!(await client.close(300)))
  assert.equal(client.stats().lost.closed, 10)
})

testWithDaemon('a daemon that rejects the client is logged once', async (daemon) => {
  daemon.greet = (peer) => peer.send(messages.BYE, { reason: 'version', versions: [27] })
  const client = clientOf(daemon.path)
  publish(client, 10)
  await eventually(() => warned('versions 27'))
  assert(!(await client.close(1000)))
  const lines = warnings.mock.calls.filter((call) => call.arguments[0].includes('versions 27'))
  assert.equal(lines.length, 1)
})

testWithDaemon('a daemon with small limits', async (daemon) => {
  daemon.welcome = { max_key_bytes: 1000 }
  const client = clientOf(daemon.path)
  publish(client, 10)
  await eventually(() => warned('raise --max-key-bytes'))
  await client.close(100)
})

testWithDaemon('a malformed message ends the connection', async (daemon) => {
  const client = clientOf(daemon.path)
  publish(client, 10)
  await eventually(() => daemon.spans.length === 10)
  daemon.peers[0].socket.write(Buffer.of(0, 0, 0, 1, 0xc1))
  await eventually(() => daemon.peers.length === 2)
  publish(client, 10, 10)
  assert(await client.close())
  assert.equal(daemon.spans.length, 20)
})

test('kept memory has a limit', () => {
  const kept = new Kept(10_000)
  let sent = 0
  const packer = new Packer((batch) => {
    sent += batch.spans
    kept.add(batch, sent)
  })
  for (let i = 0; i < 10 * 256; i++) packer.add(KEY, 1, NOW, 0)
  const resolution = kept.resolve(sent, 256, [256, 0, 700, 1])
  assert.deepEqual(
    resolution.resend.map((batch) => batch.spans),
    [256, 256],
  )
  // Spans 257 to 2048 are no longer kept: up to 700 are ambiguous.
  assert.deepEqual([resolution.ambiguous, resolution.lost], [700 - 256, 2048 - 700])
})

test('the schedule sends before an interval ends', () => {
  const schedule = new Schedule(5000, 1e10)
  assert.equal(schedule.wait(100_000), 5000)
  const wait = schedule.wait(108_000)
  assert(wait >= 1700 && wait <= 1900)
  assert.equal(schedule.wait(109_950), 5000)
  assert.equal(new Schedule(5000, 0).wait(109_000), 5000)
})
