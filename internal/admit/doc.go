// Package admit publishes spans to the aggregator: it resolves the key of each span, fills the
// span's slot, claims ring slots, publishes them, and accounts for every outcome. Each receiver has
// a Publisher per origin and gives it batches: messages of the native protocol, or spans that the
// receiver counted from a request body. So keys, budgets, cycles and accounting are the same for
// all receivers.
//
// # One key cache
//
// Each publisher caches the keys of its spans (keyTable). The cache key is the bytes of the span's
// key in the native protocol, or the fingerprint of a span from a request body. On a miss the
// labels are read from those bytes, or made by the batch's labeler, then normalized and admitted
// by the registry. Nothing else in the daemon caches keys.
//
// # A batch is admitted or dropped as a whole
//
// The keys of all snapshots are resolved before the first slot is claimed. Then each ring is
// claimed once. If a ring is full, the slots that were claimed on the others are skipped, and the
// batch is dropped for one reason. Resolving and publishing happen between one Enter and one Exit
// of the aggregator's cycle, so a batch never spans two cycles. The batches of one request are
// admitted together or not at all. A retry in the same cycle reuses the resolved keys.
//
// # The totals balance, even after a panic
//
// A function that admits spans begins an entry with their number, and defers the entry's end. Spans
// that are not published by then count as dropped for the entry's reason. Until the outcome is
// known, that is DropBug or DropLeftToAgent. Spans of a refused request, which its sender retries,
// are not counted as received.
//
// # Overload leaves room for others
//
// Publishers share the rings. While several are open, none may hold more slots of a ring than it
// leaves free (ringShare). So a publisher that sends too much waits or drops at its share, and the
// batches of others still fit. The memory for keys is shared in a similar way (keyMemory).
//
// # Concurrency
//
// A Publisher belongs to one goroutine at a time. It takes no lock except the registry's, for the
// first two uses of a key in an interval. The state that all publishers share is atomic: the totals,
// the memory for keys and the number of publishers.
//
// # Limits
//
// Config limits the snapshots per batch, and the keys and their bytes per publisher and in total. A
// publisher holds its key table and the scratch of one batch; PublisherBytes is the sum. A span
// whose key is cached allocates nothing. Neither does a burst of keys that occur once, unless their
// labels have to be normalized.
package admit
