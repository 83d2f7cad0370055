/** A connection to the daemon: finding its socket, the greeting, and reading and writing. */
import { lstatSync } from 'node:fs'
import { connect as open, type Socket } from 'node:net'
import { isAbsolute, join } from 'node:path'
import * as messages from './messages'
import { Bye, type Features, type FlushResponse, type Welcome } from './messages'
import { MalformedError } from './msgpack'

export const SOCKET_VARIABLE = 'SPANSTATSD_SOCKET'

const GREETING_TIMEOUT_MILLIS = 5000 // from connecting to the daemon's welcome

/** Returns the paths to try, in this order. */
export function socketPaths(configured: string): string[] {
  const path = configured || process.env[SOCKET_VARIABLE]
  if (path) return [path]
  const user = process.getuid?.() ?? 0
  const folders: string[] = []
  const runtime = process.env.XDG_RUNTIME_DIR ?? ''
  if (isAbsolute(runtime)) folders.push(join(runtime, 'spanstatsd'))
  folders.push(join(process.env.TMPDIR || '/tmp', `spanstatsd-${user}`))
  return ['/var/run/spanstatsd', ...folders.filter((folder) => isOwn(folder, user))].map((folder) =>
    join(folder, 'spans.sock'),
  )
}

/** Reports whether no other user could have created a socket in a folder. */
function isOwn(folder: string, user: number): boolean {
  const status = lstatSync(folder, { throwIfNoEntry: false })
  return status?.isDirectory() === true && status.uid === user && (status.mode & 0o077) === 0
}

/** Handles the events of a connection. */
export interface Listener {
  /** Messages have arrived. */
  onMessages(connection: Connection): void
  /** The connection has ended, for the reason in ending. */
  onEnd(connection: Connection): void
}

/** A connection on which the daemon has sent its welcome. */
export class Connection {
  features: Features
  readonly since = performance.now()
  /** Spans that were handed over. */
  sent = 0
  /** How many of them the daemon has reported as settled. */
  settled = 0
  /** Why the connection has ended. */
  ending: Error | undefined
  /** Whether a write has failed. Node.js then drops what the daemon has sent last, perhaps its bye. */
  mayHaveMissedBye = false
  /** Whether the client has said bye. */
  hasSaidBye = false
  /** Whether bytes are left that the socket has not accepted yet. */
  isWriting = false
  responses: FlushResponse[] = []

  constructor(
    private readonly socket: Socket,
    readonly welcome: Welcome,
    private unread: Buffer,
    private readonly listener: Listener,
  ) {
    this.features = welcome.features
    socket.on('data', (data) => this.read(data))
    socket.on('end', () => this.end(new EndedError('the daemon has closed the connection')))
    socket.on('error', (error) => {
      this.mayHaveMissedBye = true
      this.end(new EndedError(error.message))
    })
    socket.on('close', () => this.end(new EndedError('the connection is closed')))
  }

  /** Handles the messages that have arrived with the welcome. The caller has to handle an ending. */
  readFirst(): void {
    if (this.unread.length > 0) this.read(Buffer.alloc(0))
  }

  /** Number of sent spans without an outcome; 0 if the daemon does not report outcomes. */
  get unsettled(): number {
    return this.welcome.settled ? Math.max(this.sent - this.settled, 0) : 0
  }

  get daemonSaidBye(): boolean {
    return this.ending instanceof Bye
  }

  /** Whether the connection has ended without a bye. */
  get daemonDied(): boolean {
    return this.ending instanceof EndedError
  }

  /** Records that the first spans of the connection are settled. */
  settle(spans: number): void {
    this.settled = Math.max(this.settled, spans)
  }

  /**
   * Writes messages. onWritten is called when the socket has accepted them completely. May only be called if isWriting is
   * false: with two messages in one write, a failure would not tell whether the daemon has the first one.
   */
  write(bytes: Buffer, onWritten: () => void): void {
    this.isWriting = true
    this.socket.write(bytes, (error) => {
      if (error || this.ending) return // the message is incomplete, and the daemon ignores it
      this.isWriting = false
      onWritten()
    })
  }

  /** Writes messages before the process exits. Returns false if the socket does not accept all bytes at once. */
  writeAtExit(bytes: Buffer): boolean {
    if (this.socket.writableLength > 0) return false
    this.socket.write(bytes)
    return !this.isBlocked
  }

  /** Whether the socket has not accepted all bytes. */
  get isBlocked(): boolean {
    return this.socket.writableLength > 0 || this.socket.destroyed
  }

  /** Writes the last message, and closes the write side. The daemon reads the rest, and closes the connection. */
  writeLast(bytes: Buffer): void {
    this.hasSaidBye = true
    this.socket.end(bytes)
  }

  /** Ends the connection. */
  end(error: Error): void {
    if (this.ending) return
    this.ending = error
    this.socket.destroy()
    this.listener.onEnd(this)
  }

  /** Closes a connection that is not used. */
  discard(): void {
    this.ending = new Error('the connection is not used')
    this.socket.destroy()
  }

  private read(data: Buffer): void {
    if (this.ending) return
    try {
      const { complete, rest } = takeMessages(Buffer.concat([this.unread, data]))
      this.unread = rest
      for (const message of complete) this.handle(...messages.split(message))
    } catch (error) {
      this.end(error as Error)
      return
    }
    this.listener.onMessages(this)
  }

  private handle(kind: number, body: unknown): void {
    switch (kind) {
      case messages.FEATURES: {
        const { features, settled } = messages.readFeatures(body)
        this.features = features
        this.settle(settled)
        return
      }
      case messages.FLUSH:
        this.responses.push(messages.readFlush(body))
        return
      case messages.BYE:
        throw messages.readBye(body)
      default:
        throw new MalformedError(`the daemon sent an unexpected message of type ${kind}`)
    }
  }
}

/** The connection has ended without a bye. */
export class EndedError extends Error {}

/** Returns all complete messages, and the bytes that follow them. */
function takeMessages(unread: Buffer): { complete: Buffer[]; rest: Buffer } {
  const complete: Buffer[] = []
  let start = 0
  while (unread.length - start >= messages.HEADER_BYTES) {
    const length = unread.readUInt32BE(start)
    if (length < 1 || length > messages.MAX_FRAME) {
      throw new MalformedError(`the daemon sent a message of ${length} bytes, not 1 to ${messages.MAX_FRAME}`)
    }
    const end = start + messages.HEADER_BYTES + length
    if (end > unread.length) break
    complete.push(unread.subarray(start + messages.HEADER_BYTES, end))
    start = end
  }
  return { complete, rest: unread.subarray(start) }
}

/** Connects to the first path at which a daemon listens, sends hello, and reads the welcome. */
export async function connect(
  paths: readonly string[],
  hello: Buffer,
  signal: AbortSignal,
  listener: Listener,
): Promise<Connection> {
  let firstError: unknown
  for (const path of paths) {
    let socket: Socket
    try {
      socket = await openSocket(path, signal)
    } catch (error) {
      firstError ??= new Error(`connect to ${path}: ${(error as Error).message}`)
      continue
    }
    return greet(socket, hello, signal, listener)
  }
  throw firstError
}

function openSocket(path: string, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // The sockets don't keep the process alive. A client that is flushed or closed does that with a timer.
    const socket = open({ path, signal, allowHalfOpen: true }).unref()
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

/** Resolves on the welcome, in the same turn of the event loop as its event, so that no later event is missed. */
function greet(socket: Socket, hello: Buffer, signal: AbortSignal, listener: Listener): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let unread = Buffer.alloc(0)
    const timer = setTimeout(() => {
      fail(new Error(`the daemon sent no welcome within ${GREETING_TIMEOUT_MILLIS / 1000} s`))
    }, GREETING_TIMEOUT_MILLIS).unref()
    const fail = (error: Error) => {
      clearTimeout(timer)
      socket.destroy()
      reject(error)
    }
    socket.on('error', fail)
    socket.once('end', () => fail(new EndedError('the daemon closed the connection before its welcome')))
    socket.on('data', (data) => {
      try {
        unread = Buffer.concat([unread, data])
        const { complete } = takeMessages(unread)
        if (complete.length === 0) return
        const welcome = readWelcome(complete[0]!)
        clearTimeout(timer)
        socket.removeAllListeners()
        resolve(new Connection(socket, welcome, unread.subarray(messages.HEADER_BYTES + complete[0]!.length), listener))
      } catch (error) {
        fail(error as Error)
      }
    })
    signal.addEventListener('abort', () => fail(new Error('the client is closed')), { once: true })
    socket.write(hello)
  })
}

function readWelcome(message: Buffer): Welcome {
  const [kind, body] = messages.split(message)
  if (kind === messages.BYE) throw messages.readBye(body)
  if (kind !== messages.WELCOME) {
    throw new MalformedError(`the daemon sent a message of type ${kind} instead of a welcome`)
  }
  const welcome = messages.readWelcome(body)
  if (welcome.version !== messages.VERSION) {
    throw new MalformedError(
      `the daemon supports version ${welcome.version} of the protocol, this client version ${messages.VERSION}; ` +
        'upgrade the older one',
    )
  }
  return welcome
}
