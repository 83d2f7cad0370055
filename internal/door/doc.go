// Package door is the life of every API that traces come by over HTTP: it listens, admits
// connections, takes bodies within bounds, knows what is sent again, hands requests on, waits for who
// is behind, and drains. What is special about an API is a Door (door.go), a folder below this one.
//
// # A request's way
//
// net/http serves all connections. A plain request of HTTP/1.1, which is what senders send all day,
// is answered by its connection itself while net/http waits for the next one (package http1): the
// door opens it, its body is read, it is counted and goes on in one write of head and body, on a
// connection that is kept for the next one, and its answer is read by the same goroutine. Where
// anything takes its time, or is odd, net/http goes on with it (serve.go), from its head on or, where
// its body is read, by finish: the same steps, which may wait. net/http's own proxy needs two
// goroutines more, whose wake-ups cost more than carrying the bytes; docs/benchmarks.md has the
// figures. What goes on by gRPC or TLS is all net/http's.
//
// # What is counted
//
// A request is counted whole or not at all, because only a whole one can be marked. A body that was
// counted is known when its sender sends it again, until the sender has an answer that ends the
// matter (package bodies). Spans that go on are proposed as exemplars while they are published,
// because only then their slots are there, and resolved when who is behind has answered.
//
// # Threading
//
// The goroutine of a request does all of its work, and has the connection that it goes on by
// meanwhile. Of one that net/http serves there is one beside it that watches for the sender's leaving,
// and one that looks for an early answer while a body takes long to be written; both are waited for.
// Counting waits for no ring and no network. Publishers and a RequestLog have a lock each, and that of
// the bodies that were counted is held while one is published.
//
// # Bounds
//
// Connections, in all and of a process; a header's bytes and lines; the bytes of one body and of all,
// also of what they are inflated to; the time that a body takes; the requests that wait for who is
// behind, and the connections to it; publishers; the bodies that are remembered. Config.Memory adds
// them up.
package door
