/** Lets instrumentations see the modules that ES modules import, which needs a loader hook of OpenTelemetry. */
import { readFileSync } from 'node:fs'
import { createRequire, register } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const HOOK = '@opentelemetry/instrumentation/hook.mjs'
// Packages that depend on that of the hook. Some package managers let only them find it.
const DEPENDENTS = ['@opentelemetry/auto-instrumentations-node', '@opentelemetry/sdk-node']

const resolveFromFolder = createRequire(join(process.cwd(), 'package.json')).resolve

/**
 * Registers the loader hook if the application starts as an ES module. The hook needs a thread and some 15 MiB, so other
 * applications do without it. Has no effect if no instrumentations are installed, or if a flag sets a hook.
 */
export function registerLoaderHook(): void {
  if (!startsAsESModule() || hasLoaderFlag()) return
  const hook = findHook()
  if (hook !== undefined) register?.(pathToFileURL(hook)) // Node.js before 18.19 does not have this function
}

function startsAsESModule(): boolean {
  const program = process.argv[1] && tryTo(() => resolveFromFolder(process.argv[1]!))
  if (!program) return false // a script on the command line, or no program
  const extension = extname(program)
  if (extension === '.mjs' || extension === '.mts') return true
  if (extension === '.cjs' || extension === '.cts') return false
  return isInModulePackage(program)
}

/** Reports whether the package of a file says that its files are ES modules. */
function isInModulePackage(file: string): boolean {
  const folder = dirname(file)
  if (folder === file) return false
  const text = tryTo(() => readFileSync(join(folder, 'package.json'), 'utf8'))
  return text === undefined ? isInModulePackage(folder) : JSON.parse(text).type === 'module'
}

function hasLoaderFlag(): boolean {
  const flags = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`
  return /loader[= ]\S*hook\.mjs/.test(flags)
}

/** Returns the path of the hook, as the application finds it. */
function findHook(): string | undefined {
  for (const dependent of DEPENDENTS) {
    const path = tryTo(() => createRequire(resolveFromFolder(dependent)).resolve(HOOK))
    if (path !== undefined) return path
  }
  return tryTo(() => resolveFromFolder(HOOK))
}

function tryTo<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch {
    return undefined
  }
}
