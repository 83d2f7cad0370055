// Package exemplars keeps the exemplars of each open cycle: for each key its slowest span without an
// error and its slowest span with one, among the spans whose traces are forwarded. It knows numbers
// only, no labels and no bodies.
//
// A span is offered when it is counted, under the number that its key has in the cycle that counts
// it. Its row has the same number whatever became of its labels, and an exporter looks exemplars up
// by it, so an exemplar is always on the series that counted its span. The upstream may refuse the
// trace afterwards; then the exemplar leads to a trace that the backend does not have.
//
// # Concurrency
//
// One lock guards all cycles that are not sealed. It is taken once per body and once per cycle.
//
// The goroutine that seals a cycle reads it without the lock. No other goroutine writes to it then:
// spans are offered from within their cycle, which is sealed only after all have left it, and the
// memory of cycle n serves n+2, which begins when the flush has released n (see package aggregate).
//
// # Limits
//
// The limit of New bounds the exemplars of a cycle, one per key and outcome. A key that finds no
// room has no exemplar. New allocates all memory; Bytes returns its size.
package exemplars
