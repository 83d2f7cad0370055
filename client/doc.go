// Package client sends finished spans to spanstatsd. A tracer opens one Client per process; any goroutine publishes
// batches of snapshots on it. Publish never waits, allocates or makes a system call: it encodes a batch into a buffer,
// which a goroutine of the client writes to the socket later.
//
// # When spans are sent
//
// A full buffer is sent immediately. Other buffers wait, because a write wakes up this process and the daemon, which at
// a thousand spans per second costs more than the spans themselves. They are sent when they are Config.MaxAge (5 s) old,
// or 100 to 300 ms before the end of the daemon's interval. Flush and Close send everything immediately. Spans in buffers
// are lost when the process ends without Close. Call Close on SIGTERM, too, which only the program can handle.
//
// # An unavailable daemon
//
// Spans are buffered, and the client tries to connect with pauses of up to Config.MaxBackoff (5 s). After Config.MaxAway
// (1 min), Publish refuses batches, which takes some nanoseconds each, until a daemon is available again.
//
// If the daemon is killed, the client sends the spans that no destination has received to the next daemon. For this, it
// keeps sent spans until the daemon reports that they are settled: delivered, or accounted for as undelivered. The next
// daemon reads the outcome of kept spans from the recovery file of the killed one. Spans that may have been delivered are
// not resent, so no span is counted twice; Stats.Ambiguous is their number. Stats.Unconfirmed is the maximum number
// of spans that the kill has lost: those that exceeded Config.MaxKept, or whose outcome the next daemon does not know.
//
// # Limits
//
// Open allocates Config.BufferBytes and Config.MaxKept; parts that are never used take no physical memory. Each of up to
// 32 shards adds 99 KiB, of which the garbage collector scans 64. If no buffer is free, the newest batch is refused.
// Labels are truncated to the length that the daemon keeps. A shard keeps label strings of the caller for a while, but no
// other memory. Strings that package unsafe makes of reused memory must therefore be copied before they are published.
//
// # Accounting
//
// The numbers in Stats balance at any moment:
//
//	offered   = Published + sum of Refused
//	Published = Sent + Buffered + sum of Lost
//
// The daemon exports refused, lost, unconfirmed and ambiguous spans as spanstatsd_client_lost_spans_total, by reason.
package client
