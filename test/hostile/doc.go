// Command hostile runs built daemons between polite and hostile senders and before stand-ins that
// misbehave, and says at the end whether each polite span was counted exactly once:
//
//	go run . -time 20m [-only TEXT] [-log FILE]
//
// Two daemons with a small memory limit take spans on all of their doors. Polite senders, one for each
// door and format, send each request until it has its end, as tracers and SDKs do: compressed anew for
// each try, after 408, 500, 503 and RESOURCE_EXHAUSTED too, and some of them give a try up within
// milliseconds. Hostile shapes stand in one table (shapes.go) and are all tried at once, in
// processes of their own. The agent and the destination of OTLP stand in, and in turns
// refuse, hang, break off, answer oddly or are gone; daemons are paused and restarted in order.
//
// Each second every daemon's books must balance, and its memory and whatever it says of itself be within
// the limits that it says. Polite requests must have their end. When all is over, what the stand-ins
// counted must be what the polite senders handed over: spans, errors and the sum of durations, of each
// sender. The last line on standard output says what was tried and what was wrong, and the exit code is
// 1 unless nothing was.
//
// # What is exact
//
// Each request of a polite sender is counted once, by a daemon, or by the agent where a daemon handed
// traces on without a mark. Three things are outside of what daemons promise, and the soak keeps to that:
// the agent is away no longer than there is room for what waits; it never swallows a payload of statistics
// without an answer (such a one is ambiguous, and told so; where the machine itself stands still for as
// long as a request has, there are such, and the agent has counted them); and a daemon is restarted when
// every sender's request has had its end, because the next one does not know which requests the one
// before it has counted.
//
// # Threading
//
// A goroutine a sender, one that looks at the daemons, and the caller's, which makes the trouble. The
// ledger and the soak have a lock each. Crowds share nothing with us but standard input and output.
//
// # Bounds
//
// Requests are remembered by their number, some 100 a second. Rates are a few thousand spans a second, so
// that it can run beside other work: this finds what is wrong, and measures nothing.
package main
