package span

import "strings"

// These are the names by which a span of an OpenTelemetry SDK is known, from where it is
// counted to where it is named again.
const (
	// OTLPVersion begins the tracer's version of such an origin, as the agent writes it.
	OTLPVersion = "otlp-"
	// StatusOK is the additional tag of a span whose status is OK and not just unset, by
	// OpenTelemetry's name for it outside of OTLP.
	StatusOK = "otel.status_code:OK"
)

// OTLP says whether the origin is a process with an OpenTelemetry SDK, and which version
// that has.
func (o *Origin) OTLP() (version string, is bool) {
	return strings.CutPrefix(o.TracerVersion, OTLPVersion)
}
