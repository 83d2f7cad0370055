/** The span processor, which counts every span that ends. */
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace-base'
import type { Stats } from './accounting'
import { Attributes } from './attributes'
import { ERROR, Key, TOP_LEVEL } from './batches'
import { Client } from './client'
import { ATTRIBUTES_BY_KIND, labelsOf } from './labels'
import * as log from './log'
import { byConvention, dependsOnPath, keepNames } from './names'
import { originOf, type Resource, serviceOf } from './origin'
import type { Config } from './sender'

const DETECTION_TIMEOUT_MILLIS = 1000

/**
 * Publishes a snapshot of each span that ends, sampled or not, to the daemon.
 *
 * It never waits or throws, and connects when the first span has ended. Each tracer provider needs a processor of its own.
 * Its sampler must be an AlwaysRecordSampler, or only sampled spans reach the processor, and its resource must be marked
 * (see COUNTED_ATTRIBUTES) if a Datadog agent receives exported spans too.
 */
export class SpanstatsdSpanProcessor implements SpanProcessor {
  private readonly keepNames = keepNames()
  private readonly keys = new KeyCache()
  private readonly client: Client
  private resource: Resource | undefined
  private hasFailed = false

  constructor(config?: Partial<Config>) {
    this.client = new Client(() => this.origin(), config)
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    try {
      const { kind, parentSpanContext: parent, status, duration } = span
      const isRoot = parent === undefined
      const node = this.keys.nodeOf(span, isRoot)
      node.key ??= this.keyOf(span, isRoot, node)
      const key = node.key === DEPENDS_ON_PATH ? this.keyByName(span, isRoot, node) : node.key
      let flags = isRoot || kind === SpanKind.SERVER || kind === SpanKind.CONSUMER ? TOP_LEVEL : 0
      if (status.code === SpanStatusCode.ERROR) flags |= ERROR
      this.resource ??= span.resource as unknown as Resource
      this.client.publish(key, duration[0] * 1e9 + duration[1], span.endTime, flags)
    } catch (error) {
      if (this.hasFailed) return
      this.hasFailed = true
      log.warn(`BUG: a span can't be counted: ${(error as Error).stack}`)
    }
  }

  private keyOf(span: ReadableSpan, isRoot: boolean, node: Node): Key | typeof DEPENDS_ON_PATH {
    const attributes = new Attributes(span.attributes)
    if (!this.keepNames && dependsOnPath(span.name, span.kind, attributes)) {
      node.byName = new Map()
      return DEPENDS_ON_PATH
    }
    return this.makeKey(span, isRoot, attributes)
  }

  /** Returns the key of a span whose name depends on attributes that are not part of its signature. */
  private keyByName(span: ReadableSpan, isRoot: boolean, node: Node): Key {
    const { text, route } = byConvention(span.name, span.kind, new Attributes(span.attributes))
    const name = `${route.length} ${route}${text}`
    let key = node.byName!.get(name)
    if (key === undefined) {
      key = this.makeKey(span, isRoot, new Attributes(span.attributes))
      node.byName!.set(name, key)
      this.keys.count(name.length)
    }
    return key
  }

  private makeKey(span: ReadableSpan, isRoot: boolean, attributes: Attributes): Key {
    const { kind, status } = span
    const name = this.keepNames ? { text: span.name, route: '' } : byConvention(span.name, kind, attributes)
    const service = serviceOf(span.resource as unknown as Resource)
    return new Key(labelsOf(service, name, kind, isRoot, status.code, attributes))
  }

  /** Returns the origin, after detectors of the resource have ended, or a second at most. */
  private async origin(): Promise<Record<string, string>> {
    const resource = this.resource as Resource & Pick<ReadableSpan['resource'], 'waitForAsyncAttributes'>
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise((resolve) => {
      timer = setTimeout(resolve, DETECTION_TIMEOUT_MILLIS).unref()
    })
    await Promise.race([resource.waitForAsyncAttributes?.(), timeout])
    clearTimeout(timer)
    return originOf(resource)
  }

  /**
   * Sends all spans that have ended, and requests that the daemon exports its statistics now. Resolves when all of the
   * daemon's destinations have accepted them, or have not within 30 seconds.
   */
  async forceFlush(): Promise<void> {
    await this.client.flush()
  }

  /** Sends all spans that have ended, and waits a few seconds at most until the daemon has settled them. */
  async shutdown(): Promise<void> {
    await this.client.close()
  }

  /** Returns the numbers of spans by their fate, in this process or worker thread. */
  stats(): Stats {
    return this.client.stats()
  }
}

/** In the place of a key: the name of the spans depends on attributes that are not part of the signature. */
const DEPENDS_ON_PATH = Symbol('depends on path')

/** All spans with the same signature so far. */
interface Node {
  /** By the number of an attribute, and its value. */
  next: Map<unknown, Node>[]
  key?: Key | typeof DEPENDS_ON_PATH
  byName?: Map<string, Key>
}

const NOT_TEXT = Symbol('list')
const NEGATIVE_ZERO = Symbol('-0')

/**
 * Keys by signature: what the labels of a span depend on. The signature is not written anywhere, because that would cost
 * more than the rest of the processor. It is a path through maps with the values of one attribute each. When the cache is
 * full, it forgets all keys.
 */
export class KeyCache {
  static readonly MAX_NODES = 8192
  static readonly MAX_CHARACTERS = 1 << 20

  private roots = new Map<string, Node[]>()
  private nodes = 0
  private characters = 0

  /** Returns the node of a span. */
  nodeOf(span: ReadableSpan, isRoot: boolean): Node {
    if (this.nodes > KeyCache.MAX_NODES || this.characters > KeyCache.MAX_CHARACTERS) {
      this.roots = new Map()
      this.nodes = this.characters = 0
    }
    const { name, kind, attributes, status } = span
    let roots = this.roots.get(name)
    if (roots === undefined) {
      roots = []
      this.roots.set(name, roots)
      this.count(name.length)
    }
    const facts = (kind << 3) | (status.code << 1) | (isRoot ? 1 : 0)
    let node = roots[facts]
    if (node === undefined) {
      node = { next: [] }
      roots[facts] = node
      this.count(0)
    }
    const numbers = ATTRIBUTES_BY_KIND[kind]!
    for (const attribute in attributes) {
      const number = numbers.get(attribute)
      if (number !== undefined) node = this.follow(node, number, attributes[attribute])
    }
    return node
  }

  private follow(node: Node, attribute: number, value: unknown): Node {
    // A map distinguishes 1, "1" and true, but not 0 and -0. The elements of lists are not part of labels.
    let step = value
    if (typeof value === 'object') step = value === null ? undefined : NOT_TEXT
    else if (Object.is(value, -0)) step = NEGATIVE_ZERO
    let values = node.next[attribute]
    if (values === undefined) {
      values = new Map()
      node.next[attribute] = values
    }
    let next = values.get(step)
    if (next === undefined) {
      next = { next: [] }
      values.set(step, next)
      this.count(typeof value === 'string' ? value.length : 0)
    }
    return next
  }

  /** Counts an entry with so many characters. */
  count(characters: number): void {
    this.nodes++
    this.characters += characters
  }

  /** Returns the number of entries and their characters, for tests. */
  get size(): { nodes: number; characters: number } {
    return { nodes: this.nodes, characters: this.characters }
  }
}
