// Package otlp holds what the daemon sends by OTLP to the OpenTelemetry SDK for Go, which is
// a module of its own so that the SDK never enters the daemon's.
//
// A histogram of durations that were counted here must be, bucket for bucket and at the
// same scale, what the SDK's base-2 exponential histogram makes of the same durations. Not
// of the same to the nanosecond: every duration is truncated to ten significant bits before
// it is counted, as the agent does, and the SDK is given what is left of it, in seconds.
//
// A request must be, byte for byte, what the library for OTLP's messages writes of what it
// reads in it, and hold each series of random spans once with what they count.
package otlp
