/** A daemon for tests: it receives spans, and does what a test wants. */
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import * as messages from '../dist/messages.js'
import { unpack } from '../dist/msgpack.js'

export const FEATURES = { stats: true, peer_tags: [], span_kinds: [] }
const WELCOME = {
  version: 1,
  daemon: 'fake 1',
  max_frame: 1 << 20,
  max_batch: 1024,
  max_keys: 8192,
  max_key_bytes: 7 << 20,
  features: FEATURES,
  settled: true,
  interval: 1e10,
}

/** A connection of a client. */
class Peer {
  keys = new Map()
  spans = [] // [key, duration, end, flags]
  lost = {}
  flushes = []
  hello = undefined
  bye = undefined
  hasEnded = false
  unread = Buffer.alloc(0)

  constructor(daemon, socket) {
    this.daemon = daemon
    this.socket = socket
    socket.on('data', (data) => this.read(data))
    socket.on('end', () => socket.end())
    socket.on('error', () => {})
    socket.on('close', () => {
      this.hasEnded = true
    })
  }

  send(kind, body) {
    this.socket.write(messages.frame(kind, body))
  }

  settle(spans) {
    this.send(messages.FEATURES, { ...FEATURES, settled: spans })
  }

  /** Ends the connection without a bye, like a killed daemon. */
  die() {
    this.socket.destroy()
  }

  read(data) {
    this.unread = Buffer.concat([this.unread, data])
    while (this.unread.length >= 4 && this.unread.length >= 4 + this.unread.readUInt32BE(0)) {
      const end = 4 + this.unread.readUInt32BE(0)
      const [kind, body] = unpack(this.unread.subarray(4, end))
      this.unread = this.unread.subarray(end)
      this.handle(kind, body)
    }
  }

  handle(kind, body) {
    switch (kind) {
      case messages.HELLO:
        this.hello = body
        this.daemon.greet(this)
        break
      case messages.DEFINE:
        for (const [number, key] of body) this.keys.set(number, key)
        break
      case messages.SPANS:
        for (const [key, ...rest] of body)
          this.spans.push([typeof key === 'number' ? this.keys.get(key) : key, ...rest])
        this.daemon.onSpans(this)
        break
      case messages.LOST:
        for (const [reason, n] of body) this.lost[reason] = (this.lost[reason] ?? 0) + n
        break
      case messages.FLUSH:
        this.flushes.push(body.get('id'))
        this.daemon.onFlush(this, body.get('id'))
        break
      case messages.BYE:
        this.bye = body.get('reason')
        break
      default:
        throw new Error(`a client sent a message of type ${kind}`)
    }
  }
}

/** Listens at path. By default it settles spans when the client flushes. */
export class FakeDaemon {
  peers = []
  welcome = {} // in addition to the default
  onSpans = () => {}
  onFlush = settleAndAnswer

  constructor(path = join(mkdtempSync('/tmp/spanstatsd'), 's')) {
    this.path = path
    this.server = createServer({ allowHalfOpen: true }, (socket) => this.peers.push(new Peer(this, socket)))
  }

  static async start(path) {
    const daemon = new FakeDaemon(path)
    await new Promise((resolve) => daemon.server.listen(daemon.path, resolve))
    return daemon
  }

  greet(peer) {
    peer.send(messages.WELCOME, { ...WELCOME, token: `token-${this.peers.length}`, ...this.welcome })
  }

  /** Stops to listen, and removes the socket. */
  stopListening() {
    this.server.close()
  }

  /** Ends all connections, and stops to listen. */
  stop() {
    this.stopListening()
    for (const peer of this.peers) peer.die()
  }

  get spans() {
    return this.peers.flatMap((peer) => peer.spans)
  }
}

export function settleAndAnswer(peer, id) {
  peer.settle(peer.spans.length)
  peer.send(messages.FLUSH, { id, ok: true, error: '' })
}

/** Waits until a condition is true, and returns its value. */
export async function eventually(condition, what = condition.toString()) {
  for (const deadline = Date.now() + 20_000; Date.now() < deadline; ) {
    const value = condition()
    if (value) return value
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`${what}: not within 20 s`)
}
