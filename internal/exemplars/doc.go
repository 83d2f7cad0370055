// Package exemplars keeps, of each open cycle, spans that a person who looks at a histogram
// would want to see: for each key the slowest span without an error and the slowest with one,
// of those whose traces the backend has. It knows numbers only, no label and no body.
//
//	counting:  Table.Choose, and in it Body.Propose for each span of a trace that sampling keeps
//	the agent, or OTLP's destination, has answered:   Table.Resolve, which makes exemplars of
//	                                                  candidates or drops them
//	the cycle is encoded:     Table.Seal
//
// # On the series that counted the span, or nowhere
//
// A span is proposed under the number that its key has in the cycle in which it is counted,
// which is what its row has, whatever became of its labels: collapsed, folded, or lost in the
// overflow of its origin. An exporter asks by the same number. A candidate that is resolved
// after its cycle was sealed is left out, for nobody can say what its number means by then.
//
// # Threading
//
// One lock guards all of it but what was sealed. It is taken once for a body, once for its
// answer and once a cycle, and held for some nanoseconds a span.
//
// The goroutine that seals reads what it has sealed without the lock. Nobody writes to it
// meanwhile: Resolve leaves it alone, and the memory of cycle n is used again by the first
// Propose of n+2. That call comes from a publisher inside n+2, which begins when the flush has
// released n, by package aggregate's rule. So whatever the flush reads of n it has read
// before, and the release orders the two.
//
// # Bounds
//
// New's limit bounds the exemplars of a cycle, one for each key and outcome, and likewise the
// candidates whose bodies have no answer yet. A key that comes when there is no room has no
// exemplar. Bytes says what that takes, all of it made by New; Propose allocates nothing.
package exemplars
