// Package admit is a publisher: it finds the key of each span, makes the span's slot,
// claims room in the rings, publishes, and keeps the books of all that. Whatever brings
// spans into the daemon (connections of our protocol, requests of the agent's API) has a
// Publisher for each origin, and hands it batches in the form of our protocol. So keys,
// budgets, cycles and books are the same for all.
//
// # A batch is admitted whole or dropped whole
//
// The keys of all its snapshots are found before the first slot is claimed; then each ring
// is claimed once. If one of them has no room, what was claimed on the others is skipped,
// and the batch is dropped and counted under one reason. Finding and publishing happen
// between one Enter and one Exit of the aggregates' cycle, so the boundary of a cycle
// splits no batch. The parts of one request are admitted together or not at all.
//
// # The books balance after a panic too
//
// Whoever admits spans begins an entry with how many they are, and defers its end. What
// was not published by then is counted as dropped, for the entry's reason: until something
// else is known, that is a defect of ours, or the spans are left to the agent. Where a request
// is refused so that it is sent again, its spans are in no book: they were not received.
//
// # A flood leaves room for the others
//
// Publishers share the rings. While there is more than one, none may hold more slots of a
// ring than what it leaves free (ringShare), so a publisher that floods is dropped, or
// waits, at its share, and another's batch still finds room. The memory for keys is shared
// likewise (keyMemory).
//
// # Threads
//
// A Publisher belongs to one goroutine at a time, and takes no lock but the registry's,
// for a key that is new to the interval. What all publishers share (the books, the memory
// for keys, how many there are) is atomic.
//
// # Bounds
//
// Snapshots a batch, keys and their bytes a publisher and in all: each is a field of
// Config. A publisher holds its key table and the scratch of one batch; PublisherBytes
// sums that up. A span whose key is in the table allocates nothing, and nor does a flood
// of keys that come once.
package admit
