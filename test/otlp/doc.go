// Package otlp compares the OTLP metrics that the daemon sends with those of the OpenTelemetry SDK for
// Go. It is a separate module, so that the SDK never becomes a dependency of the daemon.
//
// A duration histogram must have the same scale and the same buckets as the SDK's base-2 exponential
// histogram of the same durations. Durations are truncated to ten significant bits before they are
// counted, as in the agent, so the SDK receives the truncated durations, in seconds.
//
// A request must be identical, byte for byte, to the encoding by the OTLP library of what the library
// decodes from it. It must contain each series of random spans once, with the right counts.
package otlp
