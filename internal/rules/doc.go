// Package rules holds the parts that all rules share. Rules read a table of spans (internal/span/spantable), decide
// which spans count, and add a snapshot of each to the batch of its origin. The rules of the Datadog agent and of its
// tracers are in rules/datadog, those of OpenTelemetry in rules/otel.
//
// # Keys
//
// Most spans are like an earlier one, so counting a span makes only a Fingerprint: a copy of the parts of the span
// that its key is made of. internal/admit has the one cache of keys, per publisher, and searches it by fingerprint. If
// the fingerprint is not in the cache, the cache asks the batch's labeller for the key of the span. A labeller is a
// counter that still has the decoded body.
//
// So a batch must be published before its counter is used again, and making a key must not fail. All that can fail
// about a key, such as a tag that only the agent can read, fails when its span is counted.
//
// Batches holds the snapshots of one body by origin, Origins numbers the origins. AppendTagValue writes the value of
// a tag as the agent does.
//
// # Limits
//
// A body has at most MaxOrigins origins and the common origin for the rest. A fingerprint has at most MaxFingerprint
// bytes, all fingerprints of a body as many as its Limits.DerivedBytes. A span whose parts are longer has no fingerprint, and
// its key is made for each use.
//
// # Concurrency
//
// One goroutine at a time uses a Batches, a Fingerprint or an Origins. The next body reuses their memory.
package rules
