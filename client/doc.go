// Package client sends the finished spans of a tracer to spanstatsd. A process opens one Client; any goroutine
// can publish batches of snapshots on it.
//
// # Data path
//
// A snapshot is encoded directly into a buffer that is later written to the socket: there is no queue of
// snapshots and no second copy. Buffers move from a shard, where publishers fill them, to sealed (full, or
// due), to the sender, which writes them, to kept (until the daemon reports their outcome), and back to free.
//
// A buffer contains one define message, followed by spans messages that use its numbers, counted from 0. So it
// has the same meaning on any connection and in any order: its rest can be sent to the next daemon with its
// definitions, and shards need not agree on numbers. A buffer defines at most 512 keys, which every daemon
// accepts; other keys are sent with their snapshots. Small batches share a message of at most 256 snapshots. A
// larger batch is split into several messages, but accepted or refused as a whole.
//
// A shard retains strings of the caller, but no other memory: the labels of the keys that its buffer defines,
// while the buffer is being filled, to recognize recurring keys without encoding them. This is safe because
// strings are immutable. A caller that creates strings with package unsafe, in memory that is reused, must
// publish copies.
//
// # When it sends
//
// A full buffer is sent immediately. A buffer that is not full waits for more, because a send wakes this
// process and the daemon, which at a thousand spans per second costs more than the spans. It waits until it is
// Config.MaxAge (5 s) old, or until 100 to 300 ms (chosen at random per connection) before the end of the
// daemon's interval. So each flush contains the spans that ended before that. Flush and Close send everything
// immediately.
//
// Waiting spans are lost if this process ends: call Close before, also on SIGTERM, which only the program can
// handle. A SIGKILL loses the spans of MaxAge at most.
//
// # Concurrency
//
// A publisher tries the lock of a shard, and continues with the next shard if another publisher holds it. It
// never waits, allocates, or makes a system call; at most, once per buffer, it wakes the sender, for which the
// Go scheduler may wake a thread. Only the sender waits for a shard, to seal it, and by polling, so that no
// publisher has to wake it. Only the sender uses sealed and kept buffers and writes to the connection. There is
// one goroutine, and a second one that reads from the connection.
//
// An idle client costs nothing: the timer runs only while a shard contains snapshots. While the daemon is
// unreachable, the sender only tries to connect, at intervals of up to Config.MaxBackoff (5 s). After
// Config.MaxAway (1 min), Publish only counts refused spans, which takes some nanoseconds per batch, until a
// daemon is reachable. Spans buffered before are sent to that daemon.
//
// # Limits
//
// Config.BufferBytes and Config.MaxKept are allocated in Open, as one pool. Kept buffers never take more than
// MaxKept of it, so at least BufferBytes are available for accepted spans that are not sent. The system commits
// only the part of the pool that is needed. The key tables take 99 KiB per shard, of which the garbage
// collector scans 64; there are at most twice as many shards as processors, and at most 32. When no buffer is
// free, new batches are refused. Labels are truncated to the length that the daemon would keep.
//
// # Crash recovery
//
// A span counts as sent when the socket has accepted the last byte of its message. A message truncated by the
// end of a connection was not sent, because a daemon discards partial messages; it is sent on the next
// connection.
//
// A daemon that shuts down cleanly counts everything that was sent: it sends bye, closes its reading side,
// which fails later writes at an exact byte, and reads everything before that.
//
// A daemon that is killed loses the spans that it held, and those in its socket. So the client keeps sent spans
// until the daemon reports that they are settled: delivered, or accounted for as lost. If the connection ends
// before that, the client asks the next daemon, which reads the recovery file of the previous one:
//
//   - Spans that no destination has are sent again, before all others, oldest first. They have their original
//     end times, so they are counted in the right buckets.
//   - Spans that were being sent to a destination may have arrived. They are not sent again, and counted as
//     Ambiguous: nothing is ever counted twice.
//   - Settled spans are dropped.
//
// So a crash loses only spans that no longer fit in Config.MaxKept; or all unsettled ones, if no daemon knows
// their outcome, because it is an older version or the file is gone. Unconfirmed is their maximum number. If
// this process is killed, too, the kept spans are lost.
//
// Close sends everything, requests a flush, and waits until all spans are settled or a destination has rejected
// them, for three seconds at most. If the daemon crashes in that time, Close connects to the next one and sends
// the spans again. Unsettled spans are in Stats and logged. To wait longer, call Flush before.
//
// # Accounting
//
// The following holds at any moment:
//
//	offered   = Published + sum of Refused
//	Published = Sent + Buffered + sum of Lost
//
// Spans that are sent again move from Sent to Buffered, and back. Unsettled, Unconfirmed and Ambiguous are
// disjoint parts of Sent.
//
// Losses are reported to the daemon, which exports them as spanstatsd_client_lost_spans_total, with the reasons
// buffer_full, disconnected, too_large, not_wanted and closed. Unconfirmed and Ambiguous are reported to the
// next daemon, as daemon_died and ambiguous. A report that could not be written is added to the next.
package client
