// Package client is what a tracer links to hand its finished spans to
// spanstatsd. A process opens one Client; any goroutine publishes batches of
// snapshots on it and goes on with its work.
//
// # What it owns
//
// Memory, and one connection. A snapshot is encoded, where it is published,
// straight into a buffer that will be written to the socket as it is: there is
// no queue of snapshots and no second copy. The way is: shard (where publishers meet it) to sealed
// (full, or due) to the sender, which writes it, and back to the free ones.
//
// A buffer holds one define message and then spans messages that use its
// numbers, counted from 0. So it means the same on any connection and in any
// order: after a reconnect, what is left of it is sent again with its
// definitions, and two shards never have to agree on a number. No buffer
// defines more than 512 keys, which every daemon takes; a key beyond those is
// sent whole with its snapshot. Small batches share a message of at most 256
// snapshots; a larger batch is split into several, yet accepted or refused whole.
//
// A shard keeps strings of the caller and no other memory of the caller: the labels of the
// keys that its buffer defines, while the buffer is being filled, to recognise a key that
// comes again without encoding it. This is safe because a string never changes. A caller that
// makes strings with package unsafe, from memory that is used again, must publish copies.
//
// # When it sends
//
// A full buffer goes at once. A buffer that is not full waits for more, because a send wakes
// this process and the daemon, which at a thousand spans a second costs more than the spans.
// It waits until it is Config.MaxAge (5 s) old, or until the daemon's interval is about to
// end, in 100 to 300 ms, drawn for each connection. So a report has the spans that ended
// before that, and the rest of its bucket comes with the next one. Flush and Close send
// everything at once.
//
// Spans that wait are lost with this process: Close the client before the process ends, and on
// SIGTERM too, for which only the program can listen. A SIGKILL takes MaxAge of spans at most;
// a lower MaxAge loses fewer.
//
// # Threading rule
//
// A publisher only ever tries a shard's lock, and tries the next shard when
// another publisher has it. It never waits, allocates or calls the system; what
// comes nearest is the word it leaves for the sender, once a buffer or once a
// wait, on which the Go scheduler may wake a thread. Only
// the sender waits for a shard, to seal it, and without standing in its lock's
// queue, so that no publisher has to wake it. The sender alone owns sealed
// buffers and the writing side of the connection. Goroutines: one, and a second
// that reads what the daemon says while there is a connection.
//
// An idle client costs nothing: the timer runs only while a shard holds something, and the
// first snapshot after silence starts it. While the daemon is away the one thing that stirs is
// the next attempt to connect, at most Config.MaxBackoff (5 s) apart once the attempts have
// slowed down. After the first that fails later than Config.MaxAway (1 min) Publish only
// counts what it refuses, which takes some nanoseconds a batch, until there is a daemon again.
// Spans that were buffered before are sent to that daemon.
//
// # Bounds
//
// Config.BufferBytes, taken once in Open, holds every snapshot that was
// accepted and not sent, whether the daemon is slow or away. The system gives
// real memory to the part of it that was ever needed. The shards' key tables
// add 99 KiB a shard, of which the collector walks 64, in as many shards as twice
// the processors, at most 32; the strings that a shard keeps are those of 16 KiB of
// keys. When no buffer is free the newest is
// refused. A label is copied up to the length that the daemon would keep of it
// (span's limits), whatever its own length is.
//
// # What is counted, and what is handed over
//
// A span is handed over when the socket took the last byte of its message, and
// is then never sent again: at most once. A message that was cut by the end of
// a connection was not handed over, because a daemon throws half a message away;
// it is sent again on the next one. A daemon that is stopped in order counts all
// that was handed over: it says bye, closes its reading side, which fails every
// later write at an exact byte, and reads what came before that to its end. A
// daemon that is killed takes with it what it held and what its socket still held.
// Sent counts those spans, and Unconfirmed says how many they are at most: a daemon
// tells each connection how many of its spans have had their outcome, so what was
// handed over beyond that to one that ended without a bye may be lost. A count is
// all that is kept of them.
//
// Stats tells the books, and they balance at any moment:
//
//	offered   = Published + sum of Refused
//	Published = Sent + Buffered + sum of Lost
//
// Both kinds of loss are reported to the daemon, which shows them as
// spanstatsd_client_lost_spans_total: by the reasons buffer_full, disconnected,
// too_large, not_wanted and closed. So is what is unconfirmed, to the next daemon, as
// daemon_died. A report that could not be written is added to the next.
package client
