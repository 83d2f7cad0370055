/**
 * Encodes and decodes msgpack, as far as the daemon's protocol needs it.
 *
 * The protocol is small and the package has no dependencies, so it does not use a msgpack library.
 */

const MAX_DEPTH = 9 // nesting of a message: [type, body] and eight levels of the body

export type Value = null | boolean | number | string | Uint8Array | readonly Value[] | { readonly [key: string]: Value }

/** The bytes are not one msgpack value, or not the expected one. */
export class MalformedError extends Error {}

/** Returns the shortest encoding of a value. Numbers must be integers that are not negative. */
export function pack(value: Value): Buffer {
  const parts: Buffer[] = []
  packInto(parts, value)
  return Buffer.concat(parts)
}

function packInto(parts: Buffer[], value: Value): void {
  if (value === null) {
    parts.push(Buffer.of(0xc0))
  } else if (typeof value === 'boolean') {
    parts.push(Buffer.of(value ? 0xc3 : 0xc2))
  } else if (typeof value === 'number') {
    parts.push(packNumber(value))
  } else if (typeof value === 'string') {
    const text = Buffer.from(value) // a lone surrogate becomes U+FFFD
    parts.push(header(text.length, 0xa0, 31, 0xd9, 0xda), text)
  } else if (value instanceof Uint8Array) {
    parts.push(header(value.length, 0, -1, 0xc4, 0xc5), Buffer.from(value))
  } else if (Array.isArray(value)) {
    parts.push(header(value.length, 0x90, 15, undefined, 0xdc))
    for (const element of value) packInto(parts, element)
  } else {
    const entries = Object.entries(value)
    parts.push(header(entries.length, 0x80, 15, undefined, 0xde))
    for (const [name, element] of entries) {
      packInto(parts, name)
      packInto(parts, element)
    }
  }
}

function packNumber(value: number): Buffer {
  if (value < 128) return Buffer.of(value)
  if (value < 1 << 8) return Buffer.of(0xcc, value)
  const bytes = Buffer.alloc(value < 1 << 16 ? 3 : value < 2 ** 32 ? 5 : 9)
  if (value < 1 << 16) bytes.writeUInt16BE(value, 1)
  else if (value < 2 ** 32) bytes.writeUInt32BE(value, 1)
  else bytes.writeBigUInt64BE(BigInt(value), 1)
  bytes[0] = value < 1 << 16 ? 0xcd : value < 2 ** 32 ? 0xce : 0xcf
  return bytes
}

/**
 * Returns the lead byte and the length. fix is the lead byte for up to most elements, one and two those for lengths of
 * one and two bytes. The lead byte for four bytes follows that for two.
 */
function header(length: number, fix: number, most: number, one: number | undefined, two: number): Buffer {
  if (length <= most) return Buffer.of(fix | length)
  if (one !== undefined && length < 1 << 8) return Buffer.of(one, length)
  if (length < 1 << 16) return Buffer.of(two, length >> 8, length & 0xff)
  const bytes = Buffer.of(two + 1, 0, 0, 0, 0)
  bytes.writeUInt32BE(length, 1)
  return bytes
}

/** Returns the only value in data. Extensions become null, and integers beyond 2^53 are rounded. */
export function unpack(data: Buffer): unknown {
  const reader = new Reader(data)
  const value = reader.value(0)
  if (reader.at !== data.length) throw new MalformedError(`${data.length - reader.at} bytes follow the message`)
  return value
}

/** A floating-point number, which is not an integer of the protocol even if its value is one. */
export class Float {
  constructor(readonly value: number) {}
}

class Reader {
  at = 0

  constructor(private readonly data: Buffer) {}

  private take(length: number): Buffer {
    const missing = this.at + length - this.data.length
    if (missing > 0) throw new MalformedError(`the message ends ${missing} bytes early`)
    this.at += length
    return this.data.subarray(this.at - length, this.at)
  }

  private length(width: number): number {
    return this.take(width).readUIntBE(0, width)
  }

  value(depth: number): unknown {
    const lead = this.take(1)[0]!
    if (lead < 0x80) return lead
    if (lead < 0x90) return this.map(lead & 15, depth + 1)
    if (lead < 0xa0) return this.array(lead & 15, depth + 1)
    if (lead < 0xc0) return this.take(lead & 31).toString()
    if (lead >= 0xe0) return lead - 0x100
    switch (lead) {
      case 0xc0:
        return null
      case 0xc2:
      case 0xc3:
        return lead === 0xc3
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.take(this.length(1 << (lead - 0xc4)))
      case 0xc7:
      case 0xc8:
      case 0xc9:
        this.take(this.length(1 << (lead - 0xc7)) + 1)
        return null
      case 0xca:
        return new Float(this.take(4).readFloatBE())
      case 0xcb:
        return new Float(this.take(8).readDoubleBE())
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.length(1 << (lead - 0xcc))
      case 0xcf:
        return Number(this.take(8).readBigUInt64BE())
      case 0xd0:
        return this.take(1).readInt8()
      case 0xd1:
        return this.take(2).readInt16BE()
      case 0xd2:
        return this.take(4).readInt32BE()
      case 0xd3:
        return Number(this.take(8).readBigInt64BE())
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        this.take((1 << (lead - 0xd4)) + 1)
        return null
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.take(this.length(1 << (lead - 0xd9))).toString()
      case 0xdc:
      case 0xdd:
        return this.array(this.length(lead === 0xdc ? 2 : 4), depth + 1)
      case 0xde:
      case 0xdf:
        return this.map(this.length(lead === 0xde ? 2 : 4), depth + 1)
      default:
        throw new MalformedError(`0x${lead.toString(16)} is not the start of a value`)
    }
  }

  private array(count: number, depth: number): unknown[] {
    this.check(count, depth)
    return Array.from({ length: count }, () => this.value(depth))
  }

  private map(count: number, depth: number): Map<unknown, unknown> {
    this.check(2 * count, depth)
    const entries = new Map<unknown, unknown>()
    for (let i = 0; i < count; i++) entries.set(this.value(depth), this.value(depth))
    return entries
  }

  /** Checks that elements of at least one byte each fit into the rest of the message. */
  private check(count: number, depth: number): void {
    if (depth > MAX_DEPTH) throw new MalformedError(`the message is nested more than ${MAX_DEPTH} deep`)
    if (count > this.data.length - this.at) throw new MalformedError(`${count} elements do not fit into the message`)
  }
}
