// Package recovery owns the recovery file: the state that a daemon leaves to the next one if it is killed.
//
// The file is next to the socket while its daemon has undelivered spans. The daemon holds a lock on it, which
// the kernel releases however the daemon ends: a file without a lock belongs to a crashed daemon. It contains
// neither spans nor keys, but the progress of the daemon:
//
//   - for each cycle: whether destinations have none of it, may have some, or it is settled; and, by receiver,
//     the number of its spans that only this daemon has;
//   - for each connection: which of its spans are in which cycles (SettlementTracker).
//
// A running daemon owns the files of crashed ones (predecessors): it looks for files without a lock, locks and
// keeps them, logs and counts the losses, and notes in the file what it has reported. If it ends, the lock
// falls, and the next daemon continues from there. So every loss is reported once, however short daemons live.
// A daemon that is still stopping when its successor starts keeps its lock, and the successor looks again.
//
// When a client reconnects with the token of its old connection, the daemon tells it which of its spans are
// settled, in doubt, or must be resent (Earlier). The others are lost: spans that only the daemon had, and,
// after a minute, those of clients that have not returned.
//
// # Concurrency
//
// The state is in ordinary memory, and each change is written to the file under a lock: with one system call, or,
// for the number of spans that a connection has sent, with one store to the mapped file (File.store). A kill
// stops all threads between two writes, and everything written remains. So the order of writes determines what
// the next daemon can read, and each function with several writes documents it. In general, a span is in the
// file before its cycle can be sealed, a cycle is in doubt before its first byte is sent, and it is settled in
// the file before any client is notified.
//
// If the file can't be written, everything works, but the next daemon has no information, and clients get no
// token.
//
// # Limits
//
// maxCycles cycles, one record per permitted connection, and the files of maxKeptFiles crashed daemons
// (DirectoryBytes). Files of crashed daemons are read piece by piece. The disk space of a file is allocated at
// the start.
package recovery
