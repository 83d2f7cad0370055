/** The client of the daemon's native protocol. It does not depend on OpenTelemetry's SDK. */
import type { HrTime } from '@opentelemetry/api'
import type { Reason, Stats } from './accounting'
import type { Key } from './batches'
import { closeAtExit, forget } from './exits'
import { type Config, DEFAULTS, type Origin, Sender } from './sender'

const CLOSE_TIMEOUT_MILLIS = 5000
const FLUSH_TIMEOUT_MILLIS = 30_000

/**
 * Publishes spans to the daemon.
 *
 * It connects with the first span, and reconnects until it is closed. Each process and each worker thread has clients of
 * its own. A process that ends by itself sends all spans before; process.exit() sends those that the socket accepts at
 * once.
 */
export class Client {
  private readonly sender: Sender

  /**
   * origin describes the process by the names in docs/protocol.md: service, env, version, host and others. A function is
   * called before each attempt to connect.
   */
  constructor(origin: Origin | (() => Origin | Promise<Origin>), config: Partial<Config> = {}) {
    const originOf = typeof origin === 'function' ? origin : () => origin
    this.sender = new Sender({ ...DEFAULTS, ...config }, originOf)
  }

  /**
   * Publishes a finished span, with its duration in nanoseconds, its end since 1970, and the flags ERROR and TOP_LEVEL.
   * Returns false if the span is refused, and counted as such. Never waits or makes a system call.
   */
  publish(key: Key, duration: number, end: HrTime, flags = 0): boolean {
    const { sender } = this
    const refusal: Reason | undefined = sender.refusal ?? (sender.isFull ? 'buffer_full' : undefined)
    if (refusal !== undefined) {
      sender.accounting.refused[refusal]++
      return false
    }
    if (sender.accounting.published++ === 0) {
      sender.start()
      closeAtExit(this)
    }
    sender.packer.add(key, duration, end, flags)
    return true
  }

  /**
   * Sends all spans that were published before, and requests that the daemon delivers its statistics now. Returns true
   * when every destination has accepted them. While the daemon is unavailable, it waits.
   */
  async flush(timeoutMillis = FLUSH_TIMEOUT_MILLIS): Promise<boolean> {
    return this.sender.accounting.published === 0 || this.sender.flush(timeoutMillis, true)
  }

  /**
   * Refuses spans from now on, sends the others, and waits until the daemon has settled them. Returns false if spans were
   * lost. It does not wait for a daemon that is not available, or longer than the timeout.
   */
  close(timeoutMillis = CLOSE_TIMEOUT_MILLIS): Promise<boolean> {
    return this.sender.close(timeoutMillis).finally(() => forget(this))
  }

  /** Sends and settles all spans before the event loop ends, if a daemon is available. */
  async drain(): Promise<void> {
    if (this.sender.isAvailable) await this.sender.flush(CLOSE_TIMEOUT_MILLIS, false)
  }

  /** Sends spans before the process exits, without the event loop. */
  exit(): void {
    this.sender.exit()
  }

  /** Returns the current counts. */
  stats(): Stats {
    const { accounting, unsettled, connection } = this.sender
    const { published, sent, buffered, unconfirmed, ambiguous, connects } = accounting
    return {
      published,
      refused: { ...accounting.refused },
      sent,
      buffered,
      lost: { ...accounting.lost },
      unsettled,
      unconfirmed,
      ambiguous,
      connects,
      daemon: connection?.welcome.daemon ?? '',
    }
  }
}
