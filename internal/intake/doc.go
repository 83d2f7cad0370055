// Package intake is what the rooms have in common that are, to a tracer, an agent or a
// collector: they take HTTP requests with traces, hold their bodies while these are counted
// and handed on, and must be harmed by nobody who sends them.
//
// It owns the bounds and the memory of that, and knows no format, no path and no answer. A
// Listener admits connections as far as its Limiter has room, and finds out who is at the
// other end. A HeaderLimit bounds the lines of a header. Bodies is the memory that bodies
// are read into, all of them together. Publishers has a publisher for each origin that was
// met, and publishes the batches of a body together. CountedBodies remembers what was
// counted until its sender is known to have the answer, which a Receipt finds out, so that
// what is sent again is counted once. StopTCP ends accepting without losing who has
// connected already. A RequestLog writes what requests cause, each line rarely.
//
// # Threading
//
// A Limiter, Bodies, Publishers, CountedBodies, a Receipt and a RequestLog are for any
// goroutine: each has one lock, and none is held while another is taken, but for that of
// CountedBodies, which is held while a body is published. A Body, a Conn and a HeaderLimit
// are of one goroutine at a time. No goroutine begins here.
//
// # Bounds
//
// Connections, in all and of a process; a header's lines; the bytes of one body and of all;
// publishers; the bodies that are remembered.
package intake
