// Package post brings bodies to a destination that speaks HTTP, and says of each what
// became of it, so that an exporter is an encoding and a table of answers.
//
//	an Endpoint, read from text                  where, and nothing that is secret is shown
//	Poster.Post: offer a body once         ->    an Answer: the flush.Attempt that it comes to,
//	                                             and what the destination said
//	Poster.Probe: a body with nothing in it      how a silent destination takes bodies
//
// The rule on sending again: what certainly did not arrive is tried again, and nothing
// else, because a destination knows no second copy. manner says how a body is offered so
// that most of what goes wrong is certain. A request of which any byte was refused did not
// arrive, since nobody counts a part; one that was written whole and never answered may
// have been counted, so its outcome is unknown. net/http calls a request written when its
// last bytes are in a buffer of its own, and also when it was never asked for the body;
// therefore both are watched: that the body was read, and that no write of the connection
// failed.
//
// Threads: any number of requests may be under way. They share how bodies are taken, an
// atomic number, and of probes one is under way at a time. A watched body is of one request
// and one goroutine; what net/http's own goroutines tell it is atomic, and may be asked once
// RoundTrip has returned, because net/http lets go of a failed request only after its
// writing goroutine has ended.
//
// Bounds: a request ends with its context; maxRead of an answer's body is read and maxSaid of
// it shown, and 64 KiB of its headers are read; no answer has its reader wait for longer than
// MaxRetryAfter.
package post
