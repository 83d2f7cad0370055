/**
 * Keeps sent batches until the daemon has settled their spans, to resend them if the daemon is killed.
 *
 * A daemon reports how many spans of a connection are settled: delivered, or counted as dropped. If a daemon ends, the
 * client asks the next one about the others, and gets the outcome of each. docs/protocol.md describes it under "When a
 * daemon has died".
 */
import type { Batch } from './batches'

// Outcomes of the spans of an earlier connection. Another value means that they are settled.
const AMBIGUOUS = 1
const UNSENT = 2

/** The unsettled spans of an ended connection, by what happens to them. */
export interface Resolution {
  /** No destination has them. */
  resend: Batch[]
  /** A destination may have them. */
  ambiguous: number
  /** No destination has them, and they are no longer kept. */
  lost: number
}

/** The sent batches of one connection, oldest first. Spans of a connection are numbered from 1. */
export class Kept {
  private batches: { batch: Batch; last: number }[] = [] // with the number of its last span
  private bytes = 0

  constructor(private readonly maxBytes: number) {}

  /** Keeps a batch. If the limit is exceeded, the oldest ones are no longer kept. */
  add(batch: Batch, last: number): void {
    this.batches.push({ batch, last })
    this.bytes += batch.size
    while (this.bytes > this.maxBytes) this.dropOldest()
  }

  /** Drops the batches whose spans are settled. */
  release(settled: number): void {
    while (this.batches.length > 0 && this.batches[0]!.last <= settled) this.dropOldest()
  }

  clear(): void {
    this.batches = []
    this.bytes = 0
  }

  private dropOldest(): void {
    this.bytes -= this.batches.shift()!.batch.size
  }

  /**
   * Decides about all spans after settled, up to sent, and forgets them. outcomes are pairs of the number of the last span
   * that an outcome applies to, and the outcome.
   */
  resolve(sent: number, settled: number, outcomes: readonly number[]): Resolution {
    const resolution: Resolution = { resend: [], ambiguous: 0, lost: 0 }
    const first = this.batches[0]
    const firstKept = first === undefined ? sent : first.last - first.batch.spans
    let at = settled
    for (let i = 0; i <= outcomes.length; i += 2) {
      const end = Math.min(outcomes[i] ?? Number.POSITIVE_INFINITY, firstKept)
      if (end <= at) continue
      const outcome = outcomes[i + 1] ?? UNSENT
      if (outcome === AMBIGUOUS) resolution.ambiguous += end - at
      else if (outcome === UNSENT) resolution.lost += end - at
      at = end
    }
    for (const { batch, last } of this.batches) {
      if (last <= settled) continue
      const outcome = outcomeOf(last, outcomes)
      if (outcome === AMBIGUOUS) resolution.ambiguous += batch.spans
      else if (outcome === UNSENT) resolution.resend.push(batch)
    }
    this.clear()
    return resolution
  }
}

function outcomeOf(number: number, outcomes: readonly number[]): number {
  for (let i = 0; i < outcomes.length; i += 2) {
    if (number <= outcomes[i]!) return outcomes[i + 1] ?? UNSENT
  }
  return UNSENT
}
