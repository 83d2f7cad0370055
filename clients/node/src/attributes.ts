/** Reads attributes of a span as texts, like the daemon does for OTLP (internal/rules/otel/attributes.go). */

const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/

// gRPC status codes by name. Some instrumentations write them without underscores.
const GRPC_NAMES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
]
const GRPC_CODES = new Map<string, string>([['CANCELED', '1']])
for (const [code, name] of GRPC_NAMES.entries()) {
  GRPC_CODES.set(name, String(code))
  GRPC_CODES.set(name.replaceAll('_', ''), String(code))
}

/** The attributes of one span. Where several names are given, the first one that the span has counts. */
export class Attributes {
  constructor(private readonly values: Readonly<Record<string, unknown>>) {}

  /** Reports whether the span has one of the attributes, even if it is empty. */
  has(...names: string[]): boolean {
    return names.some((name) => this.values[name] !== undefined)
  }

  /** Returns the value of an attribute, or an empty text. */
  text(...names: string[]): string {
    const name = names.find((name) => this.values[name] !== undefined)
    return name === undefined ? '' : textOf(this.values[name])
  }

  /** Returns the first value that is not empty, or an empty text. */
  firstText(...names: string[]): string {
    for (const name of names) {
      const text = this.text(name)
      if (text) return text
    }
    return ''
  }

  /** Reports whether one of the attributes is true. */
  isTrue(...names: string[]): boolean {
    return names.some((name) => this.values[name] === true || this.values[name] === 'true')
  }

  /** Returns the HTTP status code, or 0. */
  httpStatus(): number {
    return statusOf(this.values['http.response.status_code'] ?? this.values['http.status_code'])
  }

  /**
   * Returns the gRPC status code in decimal digits, or an empty text. The current attribute has other meanings in other
   * RPC systems.
   */
  grpcStatus(): string {
    let name = 'rpc.grpc.status_code'
    if (!this.has(name) && (this.text('rpc.system.name') || this.text('rpc.system')) === 'grpc') {
      name = 'rpc.response.status_code'
    }
    const text = this.text(name)
    if (/^[0-9]+$/.test(text) && Number(text) < 2 ** 32) return String(Number(text))
    return GRPC_CODES.get(text.replace(/^StatusCode\./, '').toUpperCase()) ?? ''
  }
}

/** Returns a value of an attribute as text, like protobuf's JSON format. Lists and maps are empty. */
export function textOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value
    case 'boolean':
      return value ? 'true' : 'false'
    case 'number':
      if (value === Infinity) return '+Inf'
      if (value === -Infinity) return '-Inf'
      if (isLongInteger(value)) return String(BigInt(value))
      return Object.is(value, -0) ? '-0' : String(value)
    default:
      return ''
  }
}

/** Reports whether a number is an integer that OTLP exporters send with all digits, and JavaScript writes without. */
function isLongInteger(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) > Number.MAX_SAFE_INTEGER && Math.abs(value) <= 2 ** 63
}

/** Returns a status code that is a number or a text, or 0. */
function statusOf(value: unknown): number {
  let number = 0
  if (typeof value === 'number') number = value
  else if (typeof value === 'string' && NUMBER.test(value)) number = Number(value)
  return Number.isInteger(number) && number > 0 && number < 2 ** 32 ? number : 0
}

/** Returns a text with ASCII letters in lower case. */
export function lower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
