/**
 * Sends the last spans of a process or a worker thread that ends without closing its clients.
 *
 * Not covered are processes that a signal kills, and worker threads that are terminated. They lose the spans of the last
 * seconds.
 */
import type { Client } from './client'

let isWatching = false
const clients = new Map<Client, number>() // with the number of published spans that it has sent at the last end of the loop

/** Sends the spans of a client at the end of this process. */
export function closeAtExit(client: Client): void {
  if (!isWatching) {
    isWatching = true
    process.on('beforeExit', drainAll)
    process.on('exit', exitAll)
  }
  clients.set(client, 0)
}

/** Does not send the spans of a client anymore, because it is closed. */
export function forget(client: Client): void {
  clients.delete(client)
}

/** Called when the event loop is empty, and again when it is empty after this has filled it. */
function drainAll(): void {
  for (const [client, sent] of clients) {
    const { published } = client.stats()
    if (published === sent) continue
    clients.set(client, published)
    void client.drain()
  }
}

function exitAll(): void {
  for (const client of clients.keys()) client.exit()
}

/**
 * Closes all clients when a signal ends the process, and raises the signal again. Has no effect if the application
 * handles the signal.
 */
export function closeBeforeSignals(): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const close = async () => {
      if (process.listenerCount(signal) > 1) return // the application decides when the process ends
      await Promise.all([...clients.keys()].map((client) => client.close()))
      process.off(signal, close)
      process.kill(process.pid, signal)
    }
    process.on(signal, close)
  }
}
