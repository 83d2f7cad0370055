// Command hostile runs daemon binaries between well-behaved and hostile senders on one side and
// misbehaving fake backends on the other. At the end it checks that each span of a well-behaved sender
// was counted exactly once:
//
//	go run . -time 20m [-only TEXT] [-log FILE]
//
// Two daemons with a small memory limit receive spans on all their receivers. For each receiver and
// format there is a well-behaved sender. It retries each request until it is accepted or rejected, as
// tracers and SDKs do: with a new compression for each attempt, also after 408, 500, 503 and
// RESOURCE_EXHAUSTED. Impatient senders abandon an attempt after milliseconds. The hostile shapes are
// listed in one table (shapes.go) and run simultaneously in separate processes. The fake agent and the
// fake OTLP backend reject, hang, disconnect, respond incorrectly or stop listening in turn. Daemons
// are paused and gracefully restarted.
//
// Every second, the accounting of every daemon must balance, and its memory and all figures in its
// status must be within the limits that the status shows. Every request of a well-behaved sender must
// complete. At the end, the counts of the fake backends must equal the counts of these senders: spans,
// errors and the sum of durations, per sender. The last line on standard output reports the number of
// requests and the errors. The exit code is 1 if there was any error.
//
// # What is exact
//
// Each request of a well-behaved sender is counted once: by a daemon, or by the agent if a daemon
// forwarded the traces without a counted marker. Three limits of the promises of daemons apply. The
// agent is never unavailable for longer than the retry queue lasts. The agent never accepts a
// statistics payload without a response, since such a payload is ambiguous and reported so. (If the
// whole machine stalls for a request timeout, ambiguous payloads occur nevertheless, and the agent has
// counted them.) A daemon is restarted only when no sender has a request in flight, because the next
// daemon can't deduplicate requests that the previous one has counted.
//
// # Concurrency
//
// There is a goroutine per sender, one that inspects the daemons, and the caller's, which injects
// faults. The ledger and the soak have a lock each. Hostile processes are connected through standard
// input and output.
//
// # Limits
//
// Requests are remembered by number, about 100 per second. Load is limited to a few thousand spans per
// second, so that the soak can run next to other work: it finds errors and does not measure
// performance.
package main
