// Package door is what the rooms have in common that take traces over HTTP: to a tracer, an
// agent or a collector. Publishers has a publisher for each origin that was met, and publishes
// the batches of a body together. A RequestLog writes what requests cause, each line rarely.
//
// # Threading
//
// Publishers and a RequestLog are for any goroutine: each has one lock, and none is held while
// another is taken. No goroutine begins here.
//
// # Bounds
//
// Publishers.
package door
