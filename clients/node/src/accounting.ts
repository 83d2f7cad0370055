/** Accounts for every span that is offered to a client. */

/** Why spans are refused or lost, as in the daemon's metrics. */
export const REASONS = ['buffer_full', 'disconnected', 'not_wanted', 'closed'] as const
export type Reason = (typeof REASONS)[number]

/**
 * Counts the spans of a client since it was opened. At any moment, the offered spans are published and those in refused,
 * and the published ones are sent, buffered and those in lost.
 */
export interface Stats {
  /** Accepted by publish. */
  published: number
  /** Refused by publish, by reason. */
  refused: Record<Reason, number>
  /** Handed over to the daemon, without those that have to be resent. */
  sent: number
  /** Published, and neither sent nor lost yet. */
  buffered: number
  /** Published and lost, by reason. */
  lost: Record<Reason, number>

  /** Part of sent: the daemon has not reported their outcome yet. */
  unsettled: number
  /** Part of sent: lost with a killed daemon at most. */
  unconfirmed: number
  /** Part of sent: a killed daemon was sending them to a destination. */
  ambiguous: number

  /** Connections on which a daemon sent its welcome. */
  connects: number
  /** Name and version of the daemon, while connected. */
  daemon: string
}

/** The counts of one client. */
export class Accounting {
  published = 0
  sent = 0
  unconfirmed = 0
  ambiguous = 0
  connects = 0
  readonly refused = zeros()
  readonly lost = zeros()

  get buffered(): number {
    return this.published - this.sent - sum(this.lost)
  }

  /** Returns all spans to report to the daemon as not counted, by reason. */
  notCounted(): Record<string, number> {
    const counts: Record<string, number> = { daemon_died: this.unconfirmed, ambiguous: this.ambiguous }
    for (const reason of REASONS) counts[reason] = this.refused[reason] + this.lost[reason]
    return counts
  }
}

export function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, n) => total + n, 0)
}

function zeros(): Record<Reason, number> {
  return { buffer_full: 0, disconnected: 0, not_wanted: 0, closed: 0 }
}
