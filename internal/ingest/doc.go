// Package ingest is where everything untrusted comes in: it listens on the
// socket, reads what tracers send, finds each snapshot's key and publishes
// whole batches into the rings. It owns the connections and their buffers.
//
// # One goroutine a connection
//
// It reads into one buffer of its own and walks each frame in place. A key is
// found by its raw bytes in the connection's own table: one hash, one
// comparison, nothing decoded and nothing allocated. Only the first use of a
// key in an interval goes further: its labels are looked at where they lie, and the
// key is admitted at a glance, or normalised and admitted to the interval's registry.
// That allocates nothing either, unless the key is remembered or one of its labels is
// new. What comes once is not remembered for long, see again.
//
// # A batch is admitted whole or dropped whole
//
// All of a batch's snapshots are resolved before the first slot is claimed: one slot
// each, up to four where it has a weight or lasted long, so a batch that fits a ring may
// not with those; each ring is then claimed once. If one of them has no room, what was claimed
// on the others is published as skips and the batch is dropped, and counted
// under one reason. Resolving and publishing happen between one Enter and one
// Exit of the aggregates' cycle, so the boundary of a cycle splits no batch. Batches that
// lie in the buffer one behind the other are admitted together, where they can be.
//
// # A flood leaves room for the others
//
// Publishers share the rings. While there is more than one, none may hold more
// slots of a ring than what it leaves free, so a tracer that floods is
// dropped, or blocked, at its share, and another's batch still finds room. One that
// is alone leaves an eighth.
//
// A Publisher is how spans are admitted that came by another way than a
// connection of ours; what follows holds for it too.
//
// # What is malformed costs its sender its connection
//
// The connection is told why in a bye, one counter and one rate-limited log
// line say so, and no other connection notices. Frames before the fault stay
// counted. A panic in a connection's goroutine is contained like any other
// fault, under the reason "bug".
//
// # Bounds
//
// Connections, bytes a frame, snapshots a batch, keys and bytes of keys a
// connection, time to complete a hello and a frame: each is a field of Config.
// A connection's memory is its buffer of 64 KiB, its key table, and the scratch
// of one batch. A larger frame takes its buffer from a space that all connections
// share, and waits where there is none; what is free of it is lent to busy ones. Config.Memory sums that up.
package ingest
