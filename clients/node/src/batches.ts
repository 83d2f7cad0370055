/**
 * Packs spans into batches, with numbers instead of their keys.
 *
 * A key is sent once per connection, with a number, and a span then takes 17 bytes. A batch refers to a table of keys with
 * numbers from 0 on. A table never changes the number of a key, so a batch can be written to any connection, after the
 * definitions of its keys. A full table is replaced by an empty one.
 */
import type { HrTime } from '@opentelemetry/api'
import * as messages from './messages'
import { pack, type Value } from './msgpack'

const BATCH_SPANS = 256 // every daemon accepts so many spans per batch

// Limits of a table, below those of every daemon.
export const MAX_KEYS = 512
const MAX_KEY_BYTES = 40 << 10
export const MAX_COST = MAX_KEY_BYTES + MAX_KEYS * (31 + 128) // the most that a daemon charges for a full table

const MAX_NUMBERED = 4 << 10 // longer keys are sent without a number
const MAX_KEY = 20 << 10 // longer keys are cut

export const ERROR = 1
export const TOP_LEVEL = 2

/** Labels under which spans are counted. All are optional. Tags are texts like "name:value", in the order of their bytes. */
export interface Labels {
  service?: string
  operation?: string
  resource?: string
  type?: string
  kind?: string
  trace_root?: boolean
  http_status?: number
  peer_tags?: readonly string[]
  http_method?: string
  http_endpoint?: string
  grpc_status?: string
  service_source?: string
  synthetics?: boolean
  additional_tags?: readonly string[]
}

// Positions of labels in a key, and the maximum number of bytes that the daemon reads of them.
const LABELS: [keyof Labels, number][] = [
  ['service', 100],
  ['operation', 100],
  ['resource', 5000],
  ['type', 100],
  ['kind', 200],
  ['trace_root', 0],
  ['http_status', 0],
  ['peer_tags', 200],
  ['http_method', 200],
  ['http_endpoint', 200],
  ['grpc_status', 200],
  ['service_source', 200],
  ['synthetics', 0],
  ['additional_tags', 400],
]
const MAX_PEER_TAGS = 64
const MAX_ADDITIONAL_TAGS = 4
const REQUIRED = 3 // service, operation and resource are always present

/** Labels, encoded once. Keep a key next to the route or statement that it is for. */
export class Key {
  readonly encoded: Buffer

  /** Table and number that were used last. */
  table: KeyTable | undefined
  number = 0

  constructor(labels: Labels) {
    const unknown = Object.keys(labels).filter((name) => !LABELS.some(([known]) => known === name))
    if (unknown.length > 0) {
      const known = LABELS.map(([name]) => name).join(', ')
      throw new TypeError(`encode key: ${unknown.join(', ')} is not a label; use ${known}`)
    }
    const encoded = encode(labels, false)
    this.encoded = encoded.length > MAX_KEY ? encode(labels, true) : encoded
  }
}

function encode(labels: Labels, isCut: boolean): Buffer {
  const values = LABELS.map(([name, limit], position): Value => {
    const value = labels[name]
    // Absent labels have one canonical form, because the daemon finds a key by its bytes. False is one for trace_root.
    if (position < REQUIRED) return cut(value ?? '', limit, isCut)
    if (name === 'trace_root') return value === undefined ? null : Boolean(value)
    if (!value || (Array.isArray(value) && value.length === 0)) return null
    const most = name === 'peer_tags' ? MAX_PEER_TAGS : MAX_ADDITIONAL_TAGS
    return Array.isArray(value) && isCut
      ? value.slice(0, most).map((tag) => cut(tag, limit, true))
      : cut(value, limit, isCut)
  })
  while (values.length > REQUIRED && values.at(-1) === null) values.pop()
  return pack(values)
}

/** Removes text that the daemon ignores. A character has at least one byte. */
function cut(value: Value, limit: number, isCut: boolean): Value {
  return isCut && typeof value === 'string' ? value.slice(0, limit + 4) : value
}

/** Keys by number. */
export class KeyTable {
  readonly keys: Buffer[] = []
  private readonly numbers = new Map<string, number>()
  private bytes = 0

  /** Returns the number of a key, or undefined if the table is full. */
  numberOf(encoded: Buffer): number | undefined {
    const text = encoded.toString('latin1')
    let number = this.numbers.get(text)
    if (number === undefined && this.keys.length < MAX_KEYS && this.bytes + encoded.length <= MAX_KEY_BYTES) {
      number = this.keys.length
      this.numbers.set(text, number)
      this.keys.push(encoded)
      this.bytes += encoded.length
    }
    return number
  }
}

/** A message with spans, and the keys that must be defined before it. */
export interface Batch {
  frame: Buffer
  spans: number
  table: KeyTable
  /** The first so many keys of the table. */
  keys: number
  /** Bytes of memory. */
  size: number
}

/** The keys that are defined on a connection. */
export class Definitions {
  private table: KeyTable | undefined
  private count = 0

  /** Returns the batch as it is written to the connection, after the message that defines its missing keys. */
  complete(batch: Batch): Buffer {
    if (this.table !== batch.table) {
      this.table = batch.table
      this.count = 0
    }
    if (this.count >= batch.keys) return batch.frame
    const definitions = messages.define(this.count, batch.table.keys.slice(this.count, batch.keys))
    this.count = batch.keys
    return Buffer.concat([definitions, batch.frame])
  }
}

const HEAD = 11 // bytes: length of the message, [type, [count
const MAX_ROW = 22 // bytes of a span with a number
const TWO_32 = 2 ** 32

/** Packs spans into batches. */
export class Packer {
  private table = new KeyTable()
  private readonly rows = Buffer.alloc(HEAD + BATCH_SPANS * MAX_ROW)
  private at = HEAD
  private count = 0
  private keyBytes = 0 // of keys that the current batch has added to the table

  /** onBatch gets each batch when it is complete. */
  constructor(private readonly onBatch: (batch: Batch) => void) {}

  get isEmpty(): boolean {
    return this.count === 0
  }

  /** Adds a span, with its duration in nanoseconds. */
  add(key: Key, duration: number, end: HrTime, flags: number): void {
    if (key.encoded.length > MAX_NUMBERED) {
      this.addAlone(key, duration, end, flags)
      return
    }
    const number = key.table === this.table ? key.number : this.numberOf(key)
    const { rows } = this
    let at = this.at
    rows[at++] = 0x94
    if (number < 128) {
      rows[at++] = number
    } else {
      rows[at++] = 0xcd
      rows[at++] = number >> 8
      rows[at++] = number
    }
    this.at = writeTimes(rows, at, duration, end, flags)
    if (++this.count === BATCH_SPANS) this.seal()
  }

  /** Completes the current batch, unless it is empty. */
  seal(): void {
    if (this.count === 0) return
    const frame = Buffer.from(this.rows.subarray(0, this.at))
    writeHead(frame, this.count)
    const size = frame.length + this.keyBytes
    const batch = { frame, spans: this.count, table: this.table, keys: this.table.keys.length, size }
    this.at = HEAD
    this.count = this.keyBytes = 0
    this.onBatch(batch)
  }

  /** Adds a batch with one span, whose key is too long for a number. */
  private addAlone(key: Key, duration: number, end: HrTime, flags: number): void {
    this.seal()
    const encoded = pack(key.encoded)
    const frame = Buffer.alloc(HEAD + 1 + encoded.length + MAX_ROW)
    frame[HEAD] = 0x94
    encoded.copy(frame, HEAD + 1)
    const length = writeTimes(frame, HEAD + 1 + encoded.length, duration, end, flags)
    const whole = frame.subarray(0, length)
    writeHead(whole, 1)
    this.onBatch({ frame: whole, spans: 1, table: this.table, keys: this.table.keys.length, size: length })
  }

  private numberOf(key: Key): number {
    let before = this.table.keys.length
    let number = this.table.numberOf(key.encoded)
    if (number === undefined) {
      this.seal()
      this.table = new KeyTable()
      before = 0
      number = this.table.numberOf(key.encoded)!
    }
    if (this.table.keys.length > before) this.keyBytes += key.encoded.length
    key.table = this.table
    key.number = number
    return number
  }
}

function writeHead(frame: Buffer, count: number): void {
  frame.writeUInt32BE(frame.length - messages.HEADER_BYTES, 0)
  frame[4] = 0x92
  frame[5] = messages.SPANS
  frame[6] = 0xdd
  frame.writeUInt32BE(count, 7)
}

/** Writes the duration, the end and the flags, and returns the position after them. Invalid times become 0. */
function writeTimes(rows: Buffer, start: number, duration: number, end: HrTime, flags: number): number {
  let at = start
  const length = duration > 0 ? Math.min(Math.floor(duration), Number.MAX_SAFE_INTEGER) : 0
  if (length < TWO_32) {
    rows[at++] = 0xce
    at = write32(rows, at, length)
  } else {
    rows[at++] = 0xcf
    at = write32(rows, at, Math.floor(length / TWO_32))
    at = write32(rows, at, length % TWO_32)
  }
  rows[at++] = 0xcf
  // Nanoseconds since 1970 are beyond 2^53, so both halves are computed without their sum: seconds are at most 2^33, and
  // each product is below 2^53.
  const seconds = end[0] > 0 && end[0] < 2 ** 33 ? end[0] : 0
  const high = Math.floor(seconds / 65536) * 1e9 // in units of 65536 ns
  const low = (seconds % 65536) * 1e9 + (end[1] > 0 ? Math.floor(end[1]) : 0) + (high % 65536) * 65536
  at = write32(rows, at, Math.floor(high / 65536) + Math.floor(low / TWO_32))
  at = write32(rows, at, low % TWO_32)
  rows[at++] = flags & 3
  return at
}

function write32(rows: Buffer, at: number, value: number): number {
  rows[at] = value >>> 24
  rows[at + 1] = value >>> 16
  rows[at + 2] = value >>> 8
  rows[at + 3] = value
  return at + 4
}
