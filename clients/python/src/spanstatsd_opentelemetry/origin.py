"""Describes a process to the daemon by its resource, as the daemon does for OTLP (internal/rules/otel/origin.go)."""

from __future__ import annotations

from opentelemetry.sdk.resources import Resource

from spanstatsd_opentelemetry.attributes import text_of

_MAX_TEXT = 204  # characters, of which the daemon uses the first 200 bytes
_UNKNOWN_SERVICE = "unknown_service"

# Attributes by the key of an origin. The first one that is not empty counts.
_ATTRIBUTES = {
    "service": ("service.name",),
    "env": ("deployment.environment.name", "deployment.environment"),
    "version": ("service.version",),
    "host": ("host.name",),
    "container_id": ("container.id",),
    "runtime_id": ("service.instance.id",),
    "lang": ("telemetry.sdk.language",),
    "lang_version": ("process.runtime.version",),
    "lang_interpreter": ("process.runtime.name",),
    "git_commit_sha": ("vcs.ref.head.revision",),
}


def service_of(resource: Resource) -> str:
    """Returns the name of the service."""
    return text_of(resource.attributes.get("service.name"))[:_MAX_TEXT] or _UNKNOWN_SERVICE


def origin_of(resource: Resource) -> dict[str, str]:
    """Returns the origin for the hello message."""
    origin = {}
    for key, names in _ATTRIBUTES.items():
        texts = [text_of(resource.attributes.get(name)) for name in names]
        text = next(filter(None, texts), "")
        if text:
            origin[key] = text[:_MAX_TEXT]
    origin["service"] = service_of(resource)
    # This form of the version tells the daemon that the spans are from an OpenTelemetry SDK.
    origin["tracer_version"] = "otlp-" + text_of(resource.attributes.get("telemetry.sdk.version"))[:_MAX_TEXT]
    return origin
