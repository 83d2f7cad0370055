// Package clientstats reads the statistics that a tracer computes itself: a body of
// /v0.6/stats, as groups that can be added to our own.
//
// A Payload reads one body in place, with package payload, and checks it whole before
// anything is made of it.
// It accepts what can be added up exactly and nothing else: whole counts, one bucket
// width, sketches of a mapping that the agent accepts, no field that we have no place
// for. What it does not accept goes on to the agent as it came; the error says for
// which of three reasons.
//
// # Bounds
//
// What one body can make a Payload hold is bounded in groups, tags and bins, in
// proportion to the body and in all (Bytes). A sketch has bins that
// stand for durations, each once, and counts that stay exact when a million of them are
// added.
//
// # Threading
//
// One goroutine at a time uses a Payload. Its memory is used again by the next Read. The
// labels of its groups and its origin are parts of the body, so whoever keeps one bounds
// it first and copies then. Next lets go of the body.
package clientstats
