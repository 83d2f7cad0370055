/**
 * Names of spans by OpenTelemetry's semantic conventions, as the daemon derives them (internal/rules/otel/names.go).
 *
 * Instrumentations write names in many forms, some with identifiers. A name that is derived from attributes is the same
 * for all spans of the same work. docs/semantics.md explains the rules.
 */
import { SpanKind } from '@opentelemetry/api'
import { type Attributes, lower } from './attributes'

export const VARIABLE = 'SPANSTATSD_SPAN_NAMES' // the daemon reads it as well

const HTTP_METHOD = ['http.request.method', 'http.method']
const METHODS = new Set(['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'CONNECT', 'TRACE', 'QUERY'])
const MESSAGING_OPERATION = ['messaging.operation.name', 'messaging.operation.type', 'messaging.operation']
const MESSAGING_DESTINATION = ['messaging.destination.name', 'messaging.destination']
const DB_SYSTEM = ['db.system.name', 'db.system']
const DB_OPERATION = ['db.operation.name', 'db.operation']

const PLACEHOLDER = /[{<[(:*]/

/** The name under which a span is counted. */
export interface Name {
  text: string
  /** The route, if only the sent name contains it. */
  route: string
}

/** Reports whether spans are counted under the names that they have, according to the environment. */
export function keepNames(): boolean {
  const value = process.env[VARIABLE] ?? ''
  if (!['', 'convention', 'as-sent'].includes(value)) {
    throw new Error(`read ${VARIABLE}: '${value}' is not a rule for names; set convention or as-sent`)
  }
  return value === 'as-sent'
}

/** Reports whether the attributes of the called service describe it, and not the caller. */
export function hasPeer(kind: SpanKind): boolean {
  return kind === SpanKind.CLIENT || kind === SpanKind.PRODUCER || kind === SpanKind.CONSUMER
}

/** Returns the name of a span by the first rule that applies, or the name that it has. */
export function byConvention(sent: string, kind: SpanKind, a: Attributes): Name {
  let text = ''
  if (a.has('mcp.method.name')) {
    text = joined(a.text('mcp.method.name'), a.firstText('gen_ai.tool.name', 'gen_ai.prompt.name'))
  } else if (a.has('gen_ai.operation.name')) {
    text = ofGenAI(a)
  } else if (a.has(...MESSAGING_OPERATION)) {
    text = ofMessaging(a)
  } else if (a.has('rpc.method')) {
    text = ofRPC(a)
  } else if (kind !== SpanKind.SERVER && a.has(...DB_SYSTEM, ...DB_OPERATION, 'db.query.summary')) {
    text = ofDatabase(sent, a)
  } else if ((kind === SpanKind.SERVER || kind === SpanKind.CLIENT) && a.has(...HTTP_METHOD)) {
    return ofHTTP(sent, kind, a)
  }
  return { text: text || sent, route: '' }
}

/**
 * Reports whether the name of a span can depend on attributes that differ from span to span: those in PATH_ATTRIBUTES,
 * or the address of a server that is not a peer of the span. The answer depends on other attributes only.
 */
export function dependsOnPath(sent: string, kind: SpanKind, a: Attributes): boolean {
  if (a.has('mcp.method.name', 'gen_ai.operation.name')) return false
  if (a.has(...MESSAGING_OPERATION)) return !hasPeer(kind)
  if (a.has('rpc.method')) return false
  if (kind !== SpanKind.SERVER && a.has(...DB_SYSTEM, ...DB_OPERATION, 'db.query.summary')) {
    if (a.text(...DB_OPERATION) || a.text('db.query.summary')) return !hasPeer(kind)
    return sent.includes(' ')
  }
  if (a.has(...HTTP_METHOD) && !a.text(kind === SpanKind.SERVER ? 'http.route' : 'url.template')) {
    return sent.includes('/')
  }
  return false
}

/** Attributes that only names are made of, with few values. */
export const NAME_ATTRIBUTES = [
  'url.template',
  'server.port',
  'net.peer.port',
  'db.query.summary',
  'db.stored_procedure.name',
  'db.mongodb.collection',
  'db.cassandra.table',
  'messaging.destination.template',
  'messaging.destination.temporary',
  'messaging.temp_destination',
  'messaging.destination.anonymous',
  'mcp.method.name',
  'gen_ai.operation.name',
  'gen_ai.request.model',
  'gen_ai.tool.name',
  'gen_ai.agent.name',
  'gen_ai.workflow.name',
  'gen_ai.data_source.id',
  'gen_ai.prompt.name',
]

/** Attributes that names can depend on, with any number of values. */
export const PATH_ATTRIBUTES = [
  'url.path',
  'http.path',
  'http.target',
  'url.full',
  'http.url',
  'db.query.text',
  'db.statement',
]

function joined(operation: string, target: string): string {
  return operation && target ? `${operation} ${target}` : operation
}

const GEN_AI_TARGETS = new Map([
  ['execute_tool', 'gen_ai.tool.name'],
  ['create_agent', 'gen_ai.agent.name'],
  ['invoke_agent', 'gen_ai.agent.name'],
  ['invoke_workflow', 'gen_ai.workflow.name'],
  ['retrieval', 'gen_ai.data_source.id'],
])

function ofGenAI(a: Attributes): string {
  const operation = a.text('gen_ai.operation.name')
  return joined(operation, a.text(GEN_AI_TARGETS.get(operation) ?? 'gen_ai.request.model'))
}

function ofMessaging(a: Attributes): string {
  const operation = a.firstText('messaging.operation.name', 'messaging.operation', 'messaging.operation.type')
  const template = a.text('messaging.destination.template')
  if (template) return joined(operation, template)
  if (a.isTrue('messaging.destination.temporary', 'messaging.temp_destination', 'messaging.destination.anonymous')) {
    return operation
  }
  return joined(operation, a.text(...MESSAGING_DESTINATION) || serverAndPort(a))
}

function ofRPC(a: Attributes): string {
  const method = a.text('rpc.method')
  const service = a.text('rpc.service')
  const system = a.text('rpc.system.name', 'rpc.system')
  if (method === '_OTHER') return system
  if (!method || !service || method.includes('/')) return method
  return `${service}${system === 'aws-api' ? '.' : '/'}${method}`
}

function ofDatabase(sent: string, a: Attributes): string {
  const summary = a.text('db.query.summary')
  if (summary) return summary
  const operation = a.text(...DB_OPERATION)
  const isStatement = sent.includes(' ') && sent === a.text('db.query.text', 'db.statement')
  if (!operation && !isStatement) return ''
  const system = a.text(...DB_SYSTEM)
  let target = a.firstText(
    'db.collection.name',
    'db.sql.table',
    'db.mongodb.collection',
    'db.cassandra.table',
    'db.stored_procedure.name',
  )
  // Redis is an exception: its namespace is a number, and its operations need no target.
  if (!target && system !== 'redis') target = a.text('db.namespace', 'db.name') || serverAndPort(a)
  return operation ? joined(operation, target) : target || system
}

function serverAndPort(a: Attributes): string {
  const address = a.text('server.address', 'net.peer.name')
  const port = a.text('server.port', 'net.peer.port')
  return address && port ? `${address}:${port}` : address
}

function ofHTTP(sent: string, kind: SpanKind, a: Attributes): Name {
  const method = httpMethod(a)
  if (kind !== SpanKind.SERVER) {
    const target = a.text('url.template') || routeIn(sent, method, kind, a)
    return { text: joined(method, target) || sent, route: '' }
  }
  const target = a.text('http.route')
  const route = target ? '' : routeIn(sent, method, kind, a)
  return { text: joined(method, target || route) || sent, route }
}

/** Returns the HTTP method. It is HTTP if it is not a known one, because callers of a server can send any text. */
function httpMethod(a: Attributes): string {
  const sent = a.text(...HTTP_METHOD)
  const known = /^[A-Za-z]+$/.test(sent) ? sent.toUpperCase() : ''
  return METHODS.has(known) ? known : sent ? 'HTTP' : ''
}

/**
 * Returns the route that the name of an HTTP span contains after its method, or an empty text.
 *
 * A text with a placeholder is a route, unless it is the path of the request. A text without one is a route only if it is
 * from an instrumentation that writes no paths into names, like those with the tag of Zipkin.
 */
function routeIn(name: string, method: string, kind: SpanKind, a: Attributes): string {
  const text = pathIn(name, method)
  if (!text || text.includes('?') || text.includes(' ')) return ''
  let path = a.text('url.path')
  let isZipkin = false
  if (!path) [path, isZipkin] = otherPath(a)
  const isPath = path !== '' && endsIn(path, text)
  if (PLACEHOLDER.test(text)) return isPath ? '' : text
  if (kind !== SpanKind.SERVER || !isZipkin) return ''
  return isPath && (hasIdentifier(text) || a.httpStatus() === 404) ? '' : text
}

/** Returns the part of a name from its first slash, if the part before is empty or names the method. */
function pathIn(name: string, method: string): string {
  const slash = name.indexOf('/')
  if (slash < 0) return ''
  let before = lower(name.slice(0, slash))
  if (before.length > 5 && before.startsWith('http ')) before = before.slice(5)
  return before === '' || before === `${lower(method)} ` ? name.slice(slash) : ''
}

/** Returns the path of a span without url.path, and whether it is from Zipkin's tag. */
function otherPath(a: Attributes): [string, boolean] {
  const tag = a.text('http.path')
  if (tag) return [tag, true]
  let path = a.text('http.target') || a.text('url.full', 'http.url')
  const scheme = path.indexOf('://')
  if (scheme >= 0) {
    const after = path.slice(scheme + 3)
    path = after.slice(Math.max(0, after.indexOf('/')))
  }
  return [path.split('?', 1)[0]!, false]
}

/** Reports whether a path, which can have escaped bytes and any prefix, ends in a text, in any case. */
function endsIn(path: string, text: string): boolean {
  const bytes = Buffer.from(path)
  const wanted = Buffer.from(text)
  let end = bytes.length
  for (let i = wanted.length - 1; i >= 0; i--) {
    if (end === 0) return false
    let byte = bytes[end - 1]!
    let size = 1
    const escaped = end >= 3 && bytes[end - 3] === 0x25 ? bytes.toString('latin1', end - 2, end) : ''
    if (/^[0-9A-Fa-f]{2}$/.test(escaped)) {
      byte = Number.parseInt(escaped, 16)
      size = 3
    }
    if (lowerByte(byte) !== lowerByte(wanted[i]!)) return false
    end -= size
  }
  return true
}

function lowerByte(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte
}

/** Reports whether a segment of a path contains a digit, and is not a version such as v1. */
function hasIdentifier(path: string): boolean {
  return path.split('/').some((segment) => /[0-9]/.test(segment) && !(segment.startsWith('v') && segment.length <= 3))
}
