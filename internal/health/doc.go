// Package health is what the outside sees: the metrics, the probes and the
// books.
//
// It owns no state but its HTTP server. Everything that it shows it reads at
// the moment of the question from the statistics of the other rooms, which
// count with plain atomics of their own: the hot path never touches a metrics
// library, and a scrape never makes it wait. It writes to nobody.
//
// No label has a value that a tracer chooses; every reason and field is present
// from the start at 0, so that a rate over it exists before the first loss.
package health
