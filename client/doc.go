// Package client is what a tracer links to hand its finished spans to
// spanstatsd. A process opens one Client; any goroutine publishes batches of
// snapshots on it and goes on with its work.
//
// # What it owns
//
// Memory, and one connection. A snapshot is encoded, where it is published,
// straight into a buffer that will be written to the socket as it is: there is
// no queue of snapshots and no second copy. The way is: shard (where publishers meet it) to sealed
// (full, or due) to the sender, which writes it, to kept (until the daemon says what became of it), and
// back to the free ones.
//
// A buffer holds one define message and then spans messages that use its
// numbers, counted from 0. So it means the same on any connection and in any
// order: to the next daemon what is left of it is sent again with its
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
// queue, so that no publisher has to wake it. The sender alone owns sealed and
// kept buffers and the writing side of the connection. Goroutines: one, and a second
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
// Config.BufferBytes and Config.MaxKept are taken once in Open, as one pool. What is kept never
// has more than MaxKept of it, so at least BufferBytes hold every snapshot that was
// accepted and not sent, whether the daemon is slow or away. The system gives
// real memory to the part of the pool that was ever needed. The shards' key tables
// add 99 KiB a shard, of which the collector walks 64, in as many shards as twice
// the processors, at most 32; the strings that a shard keeps are those of 16 KiB of
// keys. When no buffer is free the newest is
// refused. A label is copied up to the length that the daemon would keep of it
// (span's limits), whatever its own length is.
//
// # What is counted, and what is handed over
//
// A span is handed over when the socket took the last byte of its message. A message that was cut by
// the end of a connection was not, because a daemon throws half a message away; it is sent on the next
// one.
//
// A daemon that is stopped in order counts all that was handed over: it says bye, closes its reading
// side, which fails every later write at an exact byte, and reads what came before that to its end.
// Nothing of that is sent again, unless it is killed before it has delivered it.
//
// A daemon that is killed takes with it what it held and what its socket still held. So the client
// keeps what it has handed over until the daemon says that it is settled: delivered, or in its books.
// If the connection ends before that, the client asks the next daemon, which reads in the file that
// the other one has left how far it was, or finds none behind a bye, because all was delivered:
//
//   - What no destination has is handed over again, before everything that waits, oldest first. Its
//     ends are what they were, so it is counted in the buckets where it belongs.
//   - What was on its way to a destination may have arrived. It is not sent again, and counted as
//     Ambiguous: nothing is ever counted twice.
//   - What is settled is let go.
//
// Lost to a kill is thus only what had no room in Config.MaxKept any more; or all that was not settled,
// where no daemon knows what became of it, because it is an older one, or its file is gone. Unconfirmed
// says how many spans that is at most. Who kills this process, too, takes what it keeps with it.
//
// Close sends everything, asks for a report, and waits until all is settled: for as long as its context
// lasts, three seconds at most, and no longer than until a destination has not taken the report. A
// daemon that dies meanwhile is asked for once more: if the next one is there, it is handed everything
// again. What Close has not seen settled is Unsettled then, and in one line of the log. Who wants to
// wait longer calls Flush before.
//
// Stats tells the books, and they balance at any moment:
//
//	offered   = Published + sum of Refused
//	Published = Sent + Buffered + sum of Lost
//
// What is handed over again goes back from Sent to Buffered, and counts as Sent when it is.
// Unsettled, Unconfirmed and Ambiguous are parts of Sent, and no span is in two of them.
//
// Both kinds of loss are reported to the daemon, which shows them as
// spanstatsd_client_lost_spans_total: by the reasons buffer_full, disconnected,
// too_large, not_wanted and closed. So is what is unconfirmed and ambiguous, to the next daemon, as
// daemon_died and ambiguous. A report that could not be written is added to the next.
package client
