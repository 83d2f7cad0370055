/**
 * Labels of a span, the same as the daemon's for that span over OTLP (internal/rules/otel).
 *
 * internal/rules/otel/testdata/labels.json has spans with their labels, which all implementations are tested with.
 */
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { type Attributes, lower } from './attributes'
import type { Labels } from './batches'
import { hasPeer, NAME_ATTRIBUTES, type Name } from './names'

// Attributes that become peer tags, sorted, with their older names.
const TAGS = [
  ['db.collection.name', 'db.sql.table'],
  ['db.namespace', 'db.name'],
  ['db.operation.name', 'db.operation'],
  ['db.system.name', 'db.system'],
  ['gen_ai.operation.name'],
  ['gen_ai.provider.name', 'gen_ai.system'],
  ['gen_ai.request.model'],
  ['gen_ai.response.model'],
  ['messaging.destination.name', 'messaging.destination'],
  ['messaging.operation.name'],
  ['messaging.operation.type', 'messaging.operation'],
  ['messaging.system'],
  ['peer.service'],
  ['rpc.method'],
  ['rpc.service'],
  ['rpc.system.name', 'rpc.system'],
  ['server.address', 'net.peer.name'],
]

// Attributes that describe the called service. In other spans they describe the caller, which controls their values.
const PEER_ATTRIBUTES = ['peer.service', 'server.address', 'net.peer.name']

const LABEL_ATTRIBUTES = [
  ...TAGS.flat(),
  ...NAME_ATTRIBUTES,
  'http.request.method',
  'http.method',
  'http.route',
  'http.response.status_code',
  'http.status_code',
  'rpc.grpc.status_code',
  'rpc.response.status_code',
  'faas.invoked_provider',
  'faas.invoked_name',
  'faas.trigger',
  'graphql.operation.type',
  'network.protocol.name',
]

/**
 * Attributes that the labels of a span depend on, with a number for each, by the span's kind. Those that only its name
 * depends on are not included.
 */
export const ATTRIBUTES_BY_KIND: ReadonlyArray<ReadonlyMap<string, number>> = [0, 1, 2, 3, 4].map((kind) => {
  const names = LABEL_ATTRIBUTES.filter((name) => hasPeer(kind) || !PEER_ATTRIBUTES.includes(name))
  return new Map(names.map((name, number) => [name, number]))
})

const SQL_SYSTEMS = new Set([
  'actian.ingres',
  'adabas',
  'aws.redshift',
  'cache',
  'clickhouse',
  'cloudscape',
  'cockroachdb',
  'coldfusion',
  'db2',
  'derby',
  'edb',
  'filemaker',
  'firebird',
  'firebirdsql',
  'firstsql',
  'h2',
  'h2database',
  'hanadb',
  'hsqldb',
  'ibm.db2',
  'ibm.informix',
  'ibm.netezza',
  'informix',
  'ingres',
  'instantdb',
  'interbase',
  'intersystems.cache',
  'mariadb',
  'maxdb',
  'microsoft.sql_server',
  'mssql',
  'mysql',
  'netezza',
  'oracle',
  'oracle.db',
  'other_sql',
  'pervasive',
  'pointbase',
  'postgresql',
  'progress',
  'redshift',
  'sap.hana',
  'sap.maxdb',
  'softwareag.adabas',
  'sqlite',
  'sybase',
  'teradata',
  'vertica',
])
const OTHER_SYSTEMS = new Set(['cassandra', 'redis', 'memcached', 'mongodb', 'elasticsearch', 'opensearch'])

const KINDS = ['internal', 'server', 'client', 'producer', 'consumer']

/** Returns the labels of a span, for Key. */
export function labelsOf(
  service: string,
  name: Name,
  kind: SpanKind,
  isRoot: boolean,
  status: SpanStatusCode,
  a: Attributes,
): Labels {
  const tags: string[] = []
  for (const names of TAGS) {
    if (!hasPeer(kind) && PEER_ATTRIBUTES.includes(names[0]!)) continue
    const value = a.text(...names)
    if (value) tags.push(`${names[0]}:${value}`)
  }
  return {
    service,
    operation: operationOf(kind, a),
    resource: name.text,
    type: typeOf(kind, a),
    kind: KINDS[kind],
    trace_root: isRoot,
    http_status: a.httpStatus(),
    peer_tags: tags,
    http_method: a.text('http.request.method', 'http.method'),
    http_endpoint: a.text('http.route') || name.route,
    grpc_status: a.grpcStatus(),
    additional_tags: status === SpanStatusCode.OK ? ['otel.status_code:OK'] : [],
  }
}

function operationOf(kind: SpanKind, a: Attributes): string {
  const isClient = kind === SpanKind.CLIENT
  const isServer = kind === SpanKind.SERVER
  if ((isClient || isServer) && a.text('http.request.method', 'http.method')) return request('http', isServer)
  const database = a.text('db.system.name', 'db.system')
  if (isClient && database) return `${lower(database)}.query`
  const messaging = a.text('messaging.system')
  const done = a.text('messaging.operation.type', 'messaging.operation') || a.text('messaging.operation.name')
  if (kind !== SpanKind.INTERNAL && messaging && done) return lower(`${messaging}.${done}`)
  const rpc = a.text('rpc.system.name', 'rpc.system')
  if ((isClient || isServer) && rpc) {
    if (!isClient || rpc !== 'aws-api') return request(rpc, isServer)
    const service = a.text('rpc.service')
    return service ? `aws.${lower(service)}.request` : 'aws.client.request'
  }
  const provider = a.text('faas.invoked_provider')
  const invoked = a.text('faas.invoked_name')
  if (isClient && provider && invoked) return `${lower(`${provider}.${invoked}`)}.invoke`
  const trigger = a.text('faas.trigger')
  if (isServer && trigger) return `${lower(trigger)}.invoke`
  if (a.text('graphql.operation.type')) return 'graphql.server.request'
  if (isClient || isServer) return request(a.text('network.protocol.name'), isServer)
  const name = KINDS[kind] ?? ''
  return name.slice(0, 1).toUpperCase() + name.slice(1)
}

function request(protocol: string, isServer: boolean): string {
  return `${protocol && `${lower(protocol)}.`}${isServer ? 'server' : 'client'}.request`
}

function typeOf(kind: SpanKind, a: Attributes): string {
  if (kind !== SpanKind.CLIENT) return kind === SpanKind.SERVER ? 'web' : 'custom'
  const system = a.text('db.system.name', 'db.system')
  if (!system) return 'http'
  if (SQL_SYSTEMS.has(system)) return 'sql'
  return OTHER_SYSTEMS.has(system) ? system : 'db'
}
