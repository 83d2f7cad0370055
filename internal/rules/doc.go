// Package rules provides the parts that all counting rules share. Rules read a table of spans
// (internal/span/spantable), decide which spans count, and add a snapshot of each to the batch of
// its origin. Package rules/datadog implements the rules of the Datadog agent and its tracers,
// package rules/otel those of OpenTelemetry.
//
// # Keys
//
// Most spans resemble an earlier one. So counting a span only makes a Fingerprint: a copy of the
// parts of the span that its key is made of. internal/admit has the only key cache, one per
// publisher, and looks keys up by fingerprint. On a miss, it asks the batch's labeler for the key
// of the span. A labeler is a counter that still has the decoded body.
//
// So a batch must be published before its counter is used again, and making a key must not fail.
// Everything that can fail about a key, such as a tag that only the agent can read, fails when its
// span is counted.
//
// Batches groups the snapshots of one body by origin. Origins numbers the origins. AppendTagValue
// formats the value of a tag like the agent.
//
// # Limits
//
// A body has at most MaxOrigins origins; the rest share the common origin. A fingerprint has at
// most MaxFingerprint bytes, and all fingerprints of a body together at most Limits.DerivedBytes. A
// span whose parts are longer has no fingerprint, and its key is made for each use.
//
// # Concurrency
//
// One goroutine at a time may use a Batches, a Fingerprint or an Origins. The next body reuses
// their memory.
package rules
