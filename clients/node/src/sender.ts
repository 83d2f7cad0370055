/**
 * Sends spans to the daemon. The event loop does all of it: nothing here waits, and timers and sockets do not keep the
 * process alive, except while the client is flushed or closed.
 */
import { context, createContextKey, ROOT_CONTEXT } from '@opentelemetry/api'
import { Accounting, type Reason } from './accounting'
import { type Batch, Definitions, MAX_COST, MAX_KEYS, Packer } from './batches'
import { type Connection, connect, type Listener, socketPaths } from './connection'
import { Kept } from './kept'
import * as log from './log'
import * as messages from './messages'
import { Bye, supportsRecovery } from './messages'
import { MalformedError } from './msgpack'

const WRITE_BATCHES = 8 // complete batches that are sent at once
const SETTLE_TIMEOUT_MILLIS = 3000 // how long close waits until all spans are settled
const UNSETTLED_BYE_TIMEOUT_MILLIS = 1000 // and then until the daemon has closed the connection, if they are not
const MIN_BACKOFF_MILLIS = 50
const EARLIER_PENDING = 'earlier_pending'

// The SDK ignores spans that are started in this context. The client's own connection must not make spans.
const WITHOUT_SPANS = ROOT_CONTEXT.setValue(createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING'), true)

/** Configures a client. The defaults suit most processes. */
export interface Config {
  /** Path of the daemon's socket; by default that in SPANSTATSD_SOCKET, or one of the default paths. */
  socket: string
  /** Name of the client in the daemon's log. */
  name: string
  /** Bytes of spans that wait for the daemon. */
  maxBuffer: number
  /** Bytes of spans that were sent and are not settled; 0 to resend none. */
  maxKept: number
  /** How long a span waits to be sent with others. */
  maxAgeMillis: number
  /** Time between two attempts to connect. */
  maxBackoffMillis: number
  /** Time without a daemon after which spans are refused. */
  maxAwayMillis: number
}

export const DEFAULTS: Config = {
  socket: '',
  name: 'spanstatsd-node',
  maxBuffer: 4 << 20,
  maxKept: 4 << 20,
  maxAgeMillis: 5000,
  maxBackoffMillis: 5000,
  maxAwayMillis: 60_000,
}

export type Origin = Readonly<Record<string, string>>

/** Decides how long spans wait for others, so that they are sent before an interval of the daemon ends. */
export class Schedule {
  private readonly interval: number
  // Random, so that the processes of a pod do not send at the same time.
  private readonly lead = 100 + Math.random() * 200

  constructor(
    private readonly maxAgeMillis: number,
    intervalNanos: number,
  ) {
    this.interval = intervalNanos >= 1e9 && intervalNanos <= 3600e9 ? intervalNanos / 1e6 : 0
  }

  /** Returns the time until spans are sent. now is the wall clock, whose multiples of the interval end it. */
  wait(now: number): number {
    if (this.interval === 0) return this.maxAgeMillis
    let left = this.interval - (now % this.interval) - this.lead
    if (left <= 0) left += this.interval // too late for this interval
    return Math.min(this.maxAgeMillis, left)
  }
}

/** A call of flush that waits for the daemon's response. */
interface FlushRequest {
  answer(isAccepted: boolean): void
  /** Whether it also waits for a daemon that is not available. */
  isPatient: boolean
}

/** Sends spans until it is closed. */
export class Sender implements Listener {
  /** Why spans are refused, if they are. */
  refusal: Reason | undefined
  readonly accounting = new Accounting()
  readonly packer = new Packer((batch) => this.enqueue(batch))
  connection: Connection | undefined
  isDone = false

  private readonly kept: Kept
  private last: Connection | undefined // the current connection, or the one before
  private earlier: Connection | undefined // ended connection whose kept spans the next daemon is asked about
  private pending: Batch[] = [] // to be sent, oldest first
  private pendingBytes = 0
  private writing: Batch | undefined
  private definitions = new Definitions()
  private schedule = new Schedule(0, 0)
  private isWanted = true // the daemon wants statistics
  private reported = this.accounting.notCounted()
  private requests: FlushRequest[] = [] // not sent yet
  private readonly asked = new Map<number, FlushRequest>() // sent, by ID
  private lastId = 0

  private isStarted = false
  private attempt: AbortController | undefined // while connecting
  private failures = 0 // attempts to connect, for the backoff
  private available = 0 // when the daemon was available last
  private isUnavailable = false // and this was logged
  private retryTimer: NodeJS.Timeout | undefined
  private sendTimer: NodeJS.Timeout | undefined
  private isWriteScheduled = false

  private closing: Closing | undefined

  constructor(
    private readonly config: Config,
    private readonly origin: () => Origin | Promise<Origin>,
  ) {
    this.kept = new Kept(config.maxKept)
  }

  get unsettled(): number {
    return this.last?.unsettled ?? 0
  }

  /** Whether too many spans wait for the daemon. */
  get isFull(): boolean {
    return this.pendingBytes >= this.config.maxBuffer
  }

  /** Whether a daemon is connected, or may be soon. */
  get isAvailable(): boolean {
    return this.connection !== undefined || this.attempt !== undefined
  }

  /** Connects, and reconnects until the sender is closed. */
  start(): void {
    if (this.isStarted) return
    this.isStarted = true
    this.available = performance.now()
    void this.connect()
  }

  /** Sends all spans, and then requests that the daemon reports them. */
  flush(timeoutMillis: number, isPatient: boolean): Promise<boolean> {
    if (this.isDone) return Promise.resolve(false)
    this.start()
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMillis) // keeps the process alive
      const answer = (isAccepted: boolean) => {
        clearTimeout(timer)
        resolve(isAccepted)
      }
      this.packer.seal()
      this.requests.push({ answer, isPatient })
      this.write()
    })
  }

  /** Refuses spans from now on, sends the others, and ends. Returns false if spans were lost. */
  close(timeoutMillis: number): Promise<boolean> {
    if (this.closing) return this.closing.result
    const closing = new Closing(timeoutMillis, () => this.finish())
    this.closing = closing
    this.refusal = 'closed'
    this.packer.seal()
    if (this.connection) {
      this.advance()
    } else if (!this.attempt) {
      this.connectOrFinish()
    }
    return closing.result
  }

  /** Sends spans and says bye before the process exits, without the event loop. */
  exit(): void {
    if (this.isDone) return
    this.refusal = 'closed'
    this.packer.seal()
    const { connection } = this
    if (connection && !connection.hasSaidBye && !connection.isBlocked) {
      if (this.writing) this.onSent(connection, this.writing) // its callback has not run yet
      while (this.pending.length > 0) {
        const batch = this.take()
        if (!connection.writeAtExit(this.definitions.complete(batch))) {
          this.requeue([batch])
          break
        }
        this.onSent(connection, batch)
      }
      if (this.pending.length === 0) connection.writeAtExit(messages.bye('exit'))
    }
    this.finish()
  }

  // Spans.

  private enqueue(batch: Batch): void {
    this.pending.push(batch)
    this.pendingBytes += batch.size
    if (this.pending.length >= WRITE_BATCHES && !this.isWriteScheduled && this.connection) {
      this.isWriteScheduled = true
      setImmediate(() => {
        this.isWriteScheduled = false
        this.write()
      }).unref()
    }
  }

  private take(): Batch {
    const batch = this.pending.shift()!
    this.pendingBytes -= batch.size
    return batch
  }

  /** Puts batches in front of those that wait to be sent. */
  private requeue(batches: Batch[]): void {
    this.pending.unshift(...batches)
    this.pendingBytes += batches.reduce((bytes, batch) => bytes + batch.size, 0)
  }

  private losePending(reason: Reason): number {
    const spans = this.pending.reduce((spans, batch) => spans + batch.spans, 0)
    this.accounting.lost[reason] += spans
    this.pending = []
    this.pendingBytes = 0
    return spans
  }

  // Connecting.

  private connect(): Promise<void> {
    return context.with(WITHOUT_SPANS, () => this.tryToConnect())
  }

  private async tryToConnect(): Promise<void> {
    const attempt = new AbortController()
    this.attempt = attempt
    try {
      const origin = await this.origin()
      const hello = messages.hello(this.config.name, origin, this.earlier?.welcome.token)
      const connection = await connect(socketPaths(this.config.socket), hello, attempt.signal, this)
      this.attempt = undefined
      this.begin(connection)
    } catch (error) {
      this.attempt = undefined
      if (!this.isDone) this.retry(error as Error)
    }
  }

  /** Handles a failed attempt to connect. */
  private retry(error: Error): void {
    if (!this.isUnavailable) {
      this.isUnavailable = true
      log.warn(`can't connect to the daemon; spans are buffered, and it is retried: ${error.message}`)
    }
    for (const request of this.requests) if (!request.isPatient) request.answer(false)
    this.requests = this.requests.filter((request) => request.isPatient)
    // The predecessor of the daemon may still be shutting down. The next one knows the outcome of its spans.
    const isPending = error instanceof Bye && error.reason === EARLIER_PENDING
    if (this.closing && !isPending) {
      this.finish()
      return
    }
    if (performance.now() - this.available >= this.config.maxAwayMillis && this.refusal === undefined) {
      this.refusal = 'disconnected'
      log.warn('the daemon is still unavailable; spans are refused and counted until it is back')
    }
    this.connectLater()
  }

  private connectLater(): void {
    const limit = Math.min(MIN_BACKOFF_MILLIS * 2 ** Math.min(this.failures, 32), this.config.maxBackoffMillis)
    this.failures++
    this.retryTimer = setTimeout(() => {
      this.retryTimer = undefined
      void this.connect()
    }, Math.random() * limit).unref()
  }

  /** Tries to connect once more if there are spans to send or to ask about. Only called while closing. */
  private connectOrFinish(): void {
    clearTimeout(this.retryTimer)
    if (this.pending.length > 0 || this.earlier) void this.connect()
    else this.finish()
  }

  /** Begins a connection, and decides about the spans of the earlier one. */
  private begin(connection: Connection): void {
    const { maxKeys, maxKeyBytes, interval, daemon, earlier } = connection.welcome
    if (maxKeys < MAX_KEYS || maxKeyBytes < MAX_COST) {
      connection.discard()
      throw new MalformedError(
        `the daemon accepts ${maxKeys} keys and ${maxKeyBytes} bytes of keys per connection, this client needs ` +
          `${MAX_KEYS} and ${MAX_COST}; raise --max-key-bytes of the daemon, or upgrade it`,
      )
    }
    if (connection.ending) throw connection.ending
    log.info(`connected to ${daemon}`)
    this.isUnavailable = false
    this.definitions = new Definitions()
    this.schedule = new Schedule(this.config.maxAgeMillis, interval)
    if (this.earlier) this.settleEarlier(this.earlier, earlier)
    this.earlier = undefined
    this.connection = this.last = connection
    this.accounting.connects++
    this.applyFeatures(connection)
    this.closing?.restart()
    connection.readFirst()
    this.send()
  }

  private applyFeatures(connection: Connection): void {
    this.isWanted = connection.features.stats
    if (!this.closing) this.refusal = this.isWanted ? undefined : 'not_wanted'
  }

  // Sending.

  /** Sends all spans now, and again when the next ones are due. */
  private send(): void {
    if (!this.connection) return
    this.packer.seal()
    this.advance()
    clearTimeout(this.sendTimer)
    this.sendTimer = setTimeout(() => this.send(), this.schedule.wait(Date.now())).unref()
  }

  /** Writes the next message: spans, then the report of lost ones, then requests. */
  private write(): void {
    const { connection } = this
    if (!connection || connection.isWriting || connection.hasSaidBye) return
    if (!this.isWanted) this.losePending('not_wanted')
    if (this.pending.length > 0) {
      const batch = this.take()
      this.writing = batch
      connection.write(this.definitions.complete(batch), () => {
        this.onSent(connection, batch)
        this.advance()
      })
      return
    }
    const counts = this.accounting.notCounted()
    const grown = Object.entries(counts).filter(([reason, n]) => n > this.reported[reason]!)
    if (grown.length > 0) {
      const lost = Object.fromEntries(grown.map(([reason, n]) => [reason, n - this.reported[reason]!]))
      connection.write(messages.lost(lost), () => {
        this.reported = counts
        this.advance()
      })
      return
    }
    const request = this.requests.shift()
    if (request) {
      this.asked.set(++this.lastId, request)
      connection.write(messages.flush(this.lastId), () => this.advance())
    }
  }

  /** Handles that the socket has accepted a batch. */
  private onSent(connection: Connection, batch: Batch): void {
    this.writing = undefined
    connection.sent += batch.spans
    this.accounting.sent += batch.spans
    if (supportsRecovery(connection.welcome) && this.config.maxKept > 0) this.kept.add(batch, connection.sent)
  }

  /** Takes the next step after any event of the connection. */
  private advance(): void {
    this.write()
    const { connection, closing } = this
    if (!closing || !connection || connection.hasSaidBye) return
    if (this.pending.length > 0 || connection.isWriting || this.requests.length > 0) return
    if (connection.unsettled > 0 && this.config.maxKept > 0 && !closing.hasWaited) {
      // If the daemon responds that a destination did not accept them, waiting longer is useless.
      if (closing.startWaiting(() => this.advance())) {
        this.requests.push({ answer: () => closing.stopWaiting(), isPatient: false })
        this.write()
      }
      return
    }
    connection.writeLast(messages.bye('closed'))
    if (connection.unsettled > 0) {
      closing.later(UNSETTLED_BYE_TIMEOUT_MILLIS, () => connection.end(new Error('the connection did not end in time')))
    }
  }

  onMessages(connection: Connection): void {
    this.handleMessages(connection)
    this.advance()
  }

  private handleMessages(connection: Connection): void {
    this.kept.release(connection.settled)
    this.applyFeatures(connection)
    for (const response of connection.responses.splice(0)) {
      if (!response.ok) log.warn(`flush spans: the daemon could not report them: ${response.error}`)
      this.asked.get(response.id)?.answer(response.ok)
      this.asked.delete(response.id)
    }
  }

  // Ended connections.

  onEnd(connection: Connection): void {
    if (connection !== this.connection) return
    this.connection = undefined
    this.handleMessages(connection) // those that arrived with a bye
    clearTimeout(this.sendTimer)
    this.available = performance.now()
    const isStable = this.available - connection.since > this.config.maxBackoffMillis
    if (isStable) this.failures = 0 // a connection that the daemon closes immediately counts as a failure
    log.info(`disconnected from the daemon: ${connection.ending?.message}`)
    if (this.writing) this.requeue([this.writing])
    this.writing = undefined
    for (const request of this.asked.values()) request.answer(false)
    this.asked.clear()
    this.askNextOrForget(connection)
    if (this.isDone) return
    if (this.closing && connection.hasSaidBye) this.finish()
    else if (this.closing) this.connectOrFinish()
    else this.connectLater()
  }

  /**
   * If a daemon has ended, the next one knows the outcome of the unsettled spans. Without recovery, they count as
   * delivered after a bye, as lost if the daemon died, and as ambiguous if the client can't tell.
   */
  private askNextOrForget(connection: Connection): void {
    const { hasSaidBye, daemonDied, daemonSaidBye, unsettled } = connection
    const hasEnded = (daemonDied || daemonSaidBye) && !hasSaidBye
    if (hasEnded && unsettled > 0 && supportsRecovery(connection.welcome)) {
      this.earlier = connection
      return
    }
    this.kept.clear()
    if (hasSaidBye || this.isDone) return
    connection.settle(connection.sent)
    if (daemonDied) this.countForgotten(connection, unsettled)
  }

  /** Decides about the unsettled spans of an earlier connection by the outcomes in a welcome. */
  private settleEarlier(earlier: Connection, outcomes: readonly number[]): void {
    const { unsettled, sent } = earlier
    earlier.settle(sent)
    if (outcomes.length > 0) {
      const { resend, ambiguous, lost } = this.kept.resolve(sent, sent - unsettled, outcomes)
      this.requeue(resend)
      this.countEnded(
        resend.reduce((spans, batch) => spans + batch.spans, 0),
        ambiguous,
        lost,
      )
      return
    }
    this.kept.clear()
    if (!earlier.daemonSaidBye) this.countForgotten(earlier, unsettled)
  }

  /** Counts unsettled spans of a connection that ended without a bye, and whose outcome no daemon knows. */
  private countForgotten(connection: Connection, unsettled: number): void {
    if (connection.mayHaveMissedBye) this.countEnded(0, unsettled, 0)
    else this.countEnded(0, 0, unsettled)
  }

  private countEnded(resent: number, ambiguous: number, lost: number): void {
    if (resent === 0 && ambiguous === 0 && lost === 0) return
    this.accounting.sent -= resent
    this.accounting.ambiguous += ambiguous
    this.accounting.unconfirmed += lost
    log.warn(
      `the daemon ended before it confirmed all spans: ${resent} are resent, ${ambiguous} ambiguous, ${lost} lost at most`,
    )
  }

  /** Accounts for everything that was not sent. */
  private finish(): void {
    if (this.isDone) return
    this.isDone = true
    clearTimeout(this.retryTimer)
    clearTimeout(this.sendTimer)
    if (this.writing) this.requeue([this.writing])
    this.writing = undefined
    const unsent = this.losePending('closed')
    if (unsent > 0) log.warn(`closed the client: ${unsent} spans could not be sent and are lost`)
    if (this.unsettled > 0) log.info(`closed the client before the daemon confirmed ${this.unsettled} spans`)
    this.kept.clear()
    for (const request of [...this.requests, ...this.asked.values()]) request.answer(false)
    this.closing?.end(unsent === 0)
    this.attempt?.abort()
    if (!this.connection?.hasSaidBye) this.connection?.end(new Error('the client is closed'))
  }
}

/** The end of a client: it sends the rest, waits until all spans are settled, and says bye. */
class Closing {
  readonly result: Promise<boolean>
  hasWaited = false

  private resolve: (isComplete: boolean) => void = () => {}
  private isWaiting = false
  private next: () => void = () => {}
  private readonly timers: NodeJS.Timeout[] = []

  constructor(timeoutMillis: number, onTimeout: () => void) {
    this.result = new Promise((resolve) => {
      this.resolve = resolve
    })
    this.later(timeoutMillis, onTimeout)
  }

  /** Calls a function later. Its timer keeps the process alive until the client is closed. */
  later(millis: number, call: () => void): void {
    this.timers.push(setTimeout(call, millis))
  }

  /** Begins to wait until all spans are settled, unless it has begun already. */
  startWaiting(next: () => void): boolean {
    if (this.isWaiting) return false
    this.isWaiting = true
    this.next = next
    this.later(SETTLE_TIMEOUT_MILLIS, () => this.stopWaiting())
    return true
  }

  /** Lets a new connection wait again. */
  restart(): void {
    this.isWaiting = this.hasWaited = false
  }

  stopWaiting(): void {
    if (this.hasWaited) return
    this.hasWaited = true
    this.next()
  }

  end(isComplete: boolean): void {
    for (const timer of this.timers) clearTimeout(timer)
    this.resolve(isComplete)
  }
}
