/**
 * Logs. Losses must be visible without a set-up, so warnings go to standard error. OpenTelemetry's diagnostic logger,
 * which is silent by default, gets the rest.
 */
import { diag } from '@opentelemetry/api'

export function warn(message: string): void {
  console.error(`spanstatsd: ${message}`)
}

export function info(message: string): void {
  diag.info(`spanstatsd: ${message}`)
}
