// Package ingest is where tracers that link the client come in: it listens on the socket,
// says who is there, cuts what they write into messages, and has batches admitted. It owns
// the connections and their buffers; what becomes of a batch is package admit's.
//
// # One goroutine a connection
//
// It reads into one buffer of its own and handles each frame in place, one after the other.
// Others write to the same connection: answers to flushes, features that have changed, and to
// a tracer that asked for it how many of its spans are settled. A lock guards the write side,
// and a tracer that does not read loses its connection instead of holding it. A tracer that has
// said bye, or has shut its write side, gets the answers to its flushes all the same, as long as
// it is there and the daemon does not stop. A goroutine that waits to answer a flush ends with
// the connection, before another connection gets its place and its memory.
//
// # What is malformed costs its sender its connection
//
// The connection is told why in a bye, one counter and one rate-limited log line say so,
// and no other connection notices. Frames before the fault stay counted, those behind it
// are counted as dropped. A panic in a connection's goroutine is contained like any other
// fault, under the reason "bug".
//
// # The end is an exact boundary
//
// Whatever ends a connection, its read side is closed first: what the tracer's write
// handed over before is read to the last byte, and a write after it fails. So it is where
// the tracer has left before its welcome, and where it does not read. Drain does that to
// every socket, and before it to the one that listens: whoever waits there is accepted.
//
// # Bounds
//
// Connections, bytes a frame, bytes of large frames in all, bytes a second, time to
// complete a hello and a frame: each is a field of Config. A connection's memory is its
// buffer of 64 KiB and its publisher. A larger frame takes its buffer from a room that all
// connections share, and waits where that is full. Config.Memory sums that up.
package ingest
