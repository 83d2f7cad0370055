/** Describes a process to the daemon by its resource, as the daemon does for OTLP (internal/rules/otel/origin.go). */
import { textOf } from './attributes'

const MAX_TEXT = 204 // characters, of which the daemon uses the first 200 bytes
const UNKNOWN_SERVICE = 'unknown_service'

/** The part of a resource of OpenTelemetry's SDK that is used here. */
export interface Resource {
  /** All attributes. Those that a detector has not found yet are promises. */
  getRawAttributes(): [string, unknown][]
}

// Attributes by the key of an origin. The first one that is not empty counts.
const ATTRIBUTES: Record<string, string[]> = {
  service: ['service.name'],
  env: ['deployment.environment.name', 'deployment.environment'],
  version: ['service.version'],
  host: ['host.name'],
  container_id: ['container.id'],
  runtime_id: ['service.instance.id'],
  lang: ['telemetry.sdk.language'],
  lang_version: ['process.runtime.version'],
  lang_interpreter: ['process.runtime.name'],
  git_commit_sha: ['vcs.ref.head.revision'],
}

/** Returns the name of the service. */
export function serviceOf(resource: Resource): string {
  return textOfAttribute(resource, 'service.name') || UNKNOWN_SERVICE
}

/** Returns the origin for the hello message. */
export function originOf(resource: Resource): Record<string, string> {
  const origin: Record<string, string> = {}
  for (const [key, names] of Object.entries(ATTRIBUTES)) {
    const text = names.map((name) => textOfAttribute(resource, name)).find(Boolean)
    if (text) origin[key] = text
  }
  origin.service = serviceOf(resource)
  // This form of the version tells the daemon that the spans are from an OpenTelemetry SDK.
  origin.tracer_version = `otlp-${textOfAttribute(resource, 'telemetry.sdk.version')}`
  return origin
}

function textOfAttribute(resource: Resource, name: string): string {
  // In a merged resource, the first of several attributes with the same name counts.
  const attribute = resource.getRawAttributes().find(([other, value]) => other === name && value != null)
  return textOf(attribute?.[1]).slice(0, MAX_TEXT)
}
