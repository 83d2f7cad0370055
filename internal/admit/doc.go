// Package admit publishes spans: it finds the key of each span, makes the span's slot,
// claims room in the rings, publishes, and accounts for all of that. Each receiver has a
// Publisher for each origin, and gives it batches: messages of the native protocol, or spans that
// were counted from a body. So keys, budgets, cycles and accounting are the same for all.
//
// # One cache of keys
//
// Each publisher caches the keys of its spans (keyTable). The cache key is the bytes of the span's key in the
// native protocol, or the fingerprint of a span from a body. On a miss the labels are read from those bytes, or
// made by the batch's labeller, normalized, and admitted by the registry. Nothing else in the daemon caches keys.
//
// # A batch is admitted whole or dropped whole
//
// The keys of all its snapshots are found before the first slot is claimed; then each ring
// is claimed once. If one of them has no room, the slots claimed on the others are skipped,
// and the batch is dropped and counted under one reason. Finding and publishing happen
// between one Enter and one Exit of the aggregates' cycle, so the boundary of a cycle
// splits no batch. The parts of one request are admitted together or not at all. A batch
// that is tried again in the same cycle keeps the keys that were found.
//
// # The books balance after a panic too
//
// A function that admits spans begins an entry with their number, and defers its end. Spans
// that are not published by then are counted as dropped, for the entry's reason: until
// another one is known, that is a bug, or the spans are left to the agent. If a request
// is refused so that its sender retries, its spans are in no book: they were not received.
//
// # A flood leaves room for the others
//
// Publishers share the rings. While there is more than one, none may hold more slots of a
// ring than it leaves free (ringShare), so a publisher that floods is dropped, or
// waits, at its share, and another's batch still finds room. The memory for keys is shared
// likewise (keyMemory).
//
// # Concurrency
//
// A Publisher belongs to one goroutine at a time, and takes no lock but the registry's,
// for a key's first two uses in an interval. What all publishers share (the books, the memory
// for keys, how many there are) is atomic.
//
// # Limits
//
// Snapshots per batch, keys and their bytes per publisher and in total: each is a field of
// Config. A publisher holds its key table and the scratch of one batch; PublisherBytes
// is the sum. A span whose key is in the table allocates nothing, and neither does a flood
// of keys that come once, unless their labels have to be rewritten.
package admit
