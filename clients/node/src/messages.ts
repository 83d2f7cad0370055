/** Messages of the daemon's native protocol, version 1. docs/protocol.md specifies them. */
import { MalformedError, pack, unpack, type Value } from './msgpack'

export const VERSION = 1

/** Types of messages. */
export const HELLO = 1
export const WELCOME = 2
export const FEATURES = 3
export const DEFINE = 4
export const SPANS = 5
export const LOST = 6
export const FLUSH = 7
export const BYE = 8

export const MAX_FRAME = 1 << 20 // longest message of the daemon
export const HEADER_BYTES = 4 // length of the message that follows

const MAX_TOKEN = 64
const MAX_LIST = 1024

/** Describes which spans the daemon wants. */
export interface Features {
  /** Whether it wants any. */
  stats: boolean
  peerTags: string[]
  spanKinds: string[]
  ignoreResources: string[]
  obfuscationVersion: number
}

/** The daemon's response to hello. */
export interface Welcome {
  version: number
  /** Name and version. */
  daemon: string
  maxFrame: number
  maxBatch: number
  maxKeys: number
  maxKeyBytes: number
  features: Features
  settled: boolean
  /** Nanoseconds between reports. */
  interval: number
  token: string
  earlier: number[]
}

/** Reports whether the next daemon can know the state of a connection's spans. */
export function supportsRecovery(welcome: Welcome): boolean {
  return welcome.settled && welcome.token !== '' && Buffer.byteLength(welcome.token) <= MAX_TOKEN
}

/** The daemon's response to flush. */
export interface FlushResponse {
  id: number
  ok: boolean
  error: string
}

/** The daemon's last message on a connection. */
export class Bye extends Error {
  constructor(
    readonly reason: string,
    readonly detail = '',
    readonly versions: number[] = [],
  ) {
    const supported = versions.length > 0 ? `; it supports the versions ${versions.join(', ')}` : ''
    super(`the daemon said bye: ${reason}${detail && `: ${detail}`}${supported}`)
  }
}

/** Returns a message with its length. */
export function frame(kind: number, body: Value): Buffer {
  const message = pack([kind, body])
  const length = Buffer.alloc(HEADER_BYTES)
  length.writeUInt32BE(message.length)
  return Buffer.concat([length, message])
}

/** Returns the first message of a connection, which requests settlement. */
export function hello(client: string, origin: Readonly<Record<string, string>>, earlier = ''): Buffer {
  const body = { version: VERSION, client, origin, settled: true }
  return frame(HELLO, earlier ? { ...body, earlier } : body)
}

/** Returns the message that assigns the numbers from first on to keys. */
export function define(first: number, keys: readonly Buffer[]): Buffer {
  return frame(
    DEFINE,
    keys.map((key, i) => [first + i, key]),
  )
}

/** Returns a report of spans that were not sent, by reason. */
export function lost(spans: Readonly<Record<string, number>>): Buffer {
  return frame(LOST, spans)
}

/** Returns a request for a report. */
export function flush(id: number): Buffer {
  return frame(FLUSH, { id })
}

/** Returns the last message of a client. */
export function bye(reason: string): Buffer {
  return frame(BYE, { reason })
}

/** Returns the type and the body of a message. */
export function split(message: Buffer): [number, unknown] {
  const value = unpack(message)
  if (!Array.isArray(value) || value.length !== 2) throw new MalformedError('a message is not an array of two')
  const [kind, body] = value
  if (typeof kind !== 'number' || kind < HELLO || kind > BYE)
    throw new MalformedError(`${kind} is not a type of message`)
  return [kind, body]
}

/** Decodes the body of a welcome. */
export function readWelcome(body: unknown): Welcome {
  const entries = new Entries(body)
  return {
    version: entries.integer('version'),
    daemon: entries.text('daemon'),
    maxFrame: entries.limit('max_frame', 1 << 16, 1 << 30, 1 << 20),
    maxBatch: entries.limit('max_batch', 256, 1 << 20, 1024),
    maxKeys: entries.integer('max_keys') ? entries.limit('max_keys', 1024, 1 << 20, 0) : 0,
    maxKeyBytes: entries.integer('max_key_bytes') || 1 << 16,
    features: readFeatures(entries.get('features') ?? new Map()).features,
    settled: entries.boolean('settled'),
    interval: entries.integer('interval'),
    token: entries.text('token'),
    earlier: entries.items('earlier', isInteger),
  }
}

/** Decodes the body of features. Returns them and the number of settled spans. */
export function readFeatures(body: unknown): { features: Features; settled: number } {
  const entries = new Entries(body)
  const features = {
    stats: entries.boolean('stats'),
    peerTags: entries.items('peer_tags', isText),
    spanKinds: entries.items('span_kinds', isText),
    ignoreResources: entries.items('ignore_resources', isText),
    obfuscationVersion: entries.integer('obfuscation_version'),
  }
  return { features, settled: entries.integer('settled') }
}

/** Decodes the body of a response to flush. */
export function readFlush(body: unknown): FlushResponse {
  const entries = new Entries(body)
  return { id: entries.integer('id'), ok: entries.boolean('ok'), error: entries.text('error') }
}

/** Decodes the body of a bye. */
export function readBye(body: unknown): Bye {
  const entries = new Entries(body)
  return new Bye(entries.text('reason'), entries.text('detail'), entries.items('versions', isInteger))
}

function isInteger(value: unknown): value is number {
  return typeof value === 'number'
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isBoolean(value: unknown): value is boolean {
  return typeof value === 'boolean'
}

/** Reads the entries of a body with the types that they must have. Missing entries and nil are zero values. */
class Entries {
  private readonly body: Map<unknown, unknown>

  constructor(body: unknown) {
    if (!(body instanceof Map)) throw new MalformedError('the body of a message is not a map')
    this.body = body
  }

  get(name: string): unknown {
    return this.body.get(name) ?? undefined
  }

  private entry<T>(name: string, isType: (value: unknown) => value is T): T | undefined {
    const value = this.get(name)
    if (value !== undefined && !isType(value)) throw new MalformedError(`${name} has the wrong type`)
    return value
  }

  integer(name: string): number {
    const value = this.entry(name, isInteger) ?? 0
    if (value < 0) throw new MalformedError(`${name} is negative`)
    return value
  }

  limit(name: string, least: number, most: number, otherwise: number): number {
    const value = this.integer(name) || otherwise
    if (value < least || value > most) throw new MalformedError(`${name} is ${value}, not ${least} to ${most}`)
    return value
  }

  boolean(name: string): boolean {
    return this.entry(name, isBoolean) ?? false
  }

  text(name: string): string {
    return this.entry(name, isText) ?? ''
  }

  items<T>(name: string, isType: (value: unknown) => value is T): T[] {
    const values = this.entry(name, Array.isArray) ?? []
    if (!values.every(isType)) throw new MalformedError(`an element of ${name} has the wrong type`)
    if (values.length > MAX_LIST && isType(values[0]) && isText(values[0])) {
      throw new MalformedError(`${name} has ${values.length} elements, more than ${MAX_LIST}`)
    }
    return values
  }
}
