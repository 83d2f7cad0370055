/**
 * Counts the spans of the tracer provider that the application registers, whatever sets it up:
 *
 *     node --import @spanstatsd/opentelemetry/register --import @opentelemetry/auto-instrumentations-node/register app.js
 */
import type { TracerProvider } from '@opentelemetry/api'
import { closeBeforeSignals } from './exits'
import { EXPORTER_HEADERS, install, removeProcessors } from './installation'
import { registerLoaderHook } from './loader'
import * as log from './log'
import { keepNames } from './names'

const HEADERS = 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'
const EXPORTER = 'OTEL_TRACES_EXPORTER'

// All copies of OpenTelemetry's API, also those in bundles, register their providers in one global object.
const API = Symbol.for('opentelemetry.js.api.1')
const REGISTERED = Symbol.for('spanstatsd.registered')

interface ProxyTracerProvider extends TracerProvider {
  setDelegate(provider: TracerProvider): void
}

interface GlobalAPI {
  trace?: ProxyTracerProvider
}

const globals = globalThis as unknown as Record<symbol, unknown>

if (!globals[REGISTERED]) {
  globals[REGISTERED] = true // a second copy of this package does nothing
  try {
    register()
  } catch (error) {
    log.warn(`the spans of this process are not counted: ${(error as Error).message}`)
  }
  try {
    registerLoaderHook()
  } catch (error) {
    log.warn(`the modules that ES modules import are not instrumented: ${(error as Error).message}`)
  }
}

function register(): void {
  keepNames() // throws if it is invalid, before exported spans are marked as counted
  const api = globals[API] as GlobalAPI | undefined
  if (api?.trace) {
    throw new Error('a tracer provider was registered before; load @spanstatsd/opentelemetry/register first')
  }
  const isExporting = process.env[EXPORTER] !== 'none'
  const restore = setEnvironment(isExporting)
  onProvider(api, (provider) => {
    restore()
    try {
      // Without an exporter, OpenTelemetry registers no provider. The default one was only there to prevent this.
      if (!isExporting) removeProcessors(provider)
      install({ tracerProvider: provider })
      closeBeforeSignals()
    } catch (error) {
      log.warn(`the spans of this process are not counted, although exported ones are marked as counted: ${error}`)
    }
  })
}

/**
 * Lets OTLP exporters that are created from now on mark their requests as counted. Returns a function that restores the
 * variables, because processes that this one starts may not count their spans.
 */
function setEnvironment(isExporting: boolean): () => void {
  const before = [HEADERS, EXPORTER].map((name) => [name, process.env[name]] as const)
  const mark = Object.entries(EXPORTER_HEADERS).map(([name, value]) => `${name}=${value}`)
  process.env[HEADERS] = [process.env[HEADERS], ...mark].filter(Boolean).join(',')
  if (!isExporting) process.env[EXPORTER] = 'otlp'
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}

/** Calls a function with the first tracer provider that is registered. */
function onProvider(api: GlobalAPI | undefined, call: (provider: TracerProvider) => void): void {
  const watch = (api: GlobalAPI) =>
    onceSet(api, 'trace', (proxy: ProxyTracerProvider) => {
      // The API registers its proxy, and then sets the provider that this one uses.
      const { setDelegate } = proxy
      proxy.setDelegate = (provider) => {
        proxy.setDelegate = setDelegate
        call(provider)
        setDelegate.call(proxy, provider)
      }
    })
  if (api) watch(api)
  else onceSet(globals, API, watch)
}

/** Calls a function with the first value of a property. Afterwards, the property is an ordinary one. */
function onceSet<T>(object: object, name: string | symbol, call: (value: T) => void): void {
  Object.defineProperty(object, name, {
    configurable: true,
    enumerable: true,
    get: () => undefined,
    set(value: T) {
      Object.defineProperty(object, name, { configurable: true, enumerable: true, writable: true, value })
      call(value)
    },
  })
}
