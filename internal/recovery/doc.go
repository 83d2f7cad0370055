// Package recovery owns the recovery file: the state that a daemon leaves to the next one if it is killed.
//
// The file is next to the socket while its daemon has undelivered spans. The daemon holds a lock on it, which
// the kernel releases however the daemon ends: a file without a lock belongs to a crashed daemon. It is mapped
// into memory, and contains neither spans nor keys, but the progress of the daemon:
//
//   - for each cycle: whether destinations have none of it, may have some, or it is settled; and, by receiver,
//     the number of its spans that only this daemon has;
//   - for each connection: which of its spans are in which cycles (SettlementTracker).
//
// The next daemon reads it (Predecessor). When a client reconnects with the token of its old connection, the
// daemon tells it which of its spans are settled, in doubt, or must be resent (Earlier). The others count
// as lost (Losses). The file is kept for a while under another name, because a client may reconnect only after
// another crash; every daemon gives the same answers. The file is renamed once the crash was reported
// (MarkReported): if the daemon crashes before, the next one reports it.
//
// # Concurrency
//
// Each word of the file is stored atomically, by one writer or under one lock. A kill stops all threads between
// two stores, and everything stored remains. So the order of stores determines what the next daemon can read,
// and each function with several stores documents it. In general, a span is in the file before its cycle can be
// sealed, a cycle is in doubt before its first byte is sent, and it is settled in the file before any client is
// notified.
//
// If the file can't be mapped, the words are in ordinary memory: everything works, but the next daemon has no
// information, and clients get no token.
//
// # Limits
//
// mostCycles cycles, one record per permitted connection, and mostKept reported files for keptFor at most. The
// disk space is allocated at the start, so no store can fail.
package recovery
