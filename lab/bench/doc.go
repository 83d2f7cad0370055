// Package bench measures the program from outside, as it runs in a pod: the daemon and the
// tracers are separate processes, and their costs are those that the kernel accounts to them.
//
// # Processes
//
//	this process   starts the others, runs the mock agent, reads figures
//	daemon         `spanstatsd run`, or one that is already running
//	tracers        `spanstatsd-lab bench tracer`, one process per producer
//
// A tracer reads its job as JSON from standard input, reports when it has connected, starts at
// the next message, stops early if its input ends, and writes its result. Two kinds speak the
// native protocol. "wire" writes messages encoded in advance and only updates the end times of
// their spans, so that the daemon is the bottleneck and is measured. "client" links the real
// client and publishes through it, so that the costs in the application are measured.
//
// The third kind, "http", is for workload traces only: it repeatedly sends a recorded request
// of a real tracer to the agent's API, with its spans moved to the current time (traces.go).
// The daemon then has two loads: requests that it only forwards, and requests that it counts
// and forwards. These take turns with each other and with a bare relay instead of the daemon
// (package relay), so that the difference of adjacent turns is the cost of each step.
//
// The fourth kind, "bare", does all the work of a "client" except publishing. It runs in
// parallel with a "client" at rates as in pods. The difference is the cost of publishing
// (rates.go).
//
// # Figures
//
// A run begins when the tracers receive the start signal, is drained when the daemon has counted or
// dropped the last span, and ends when the daemon has exported to the agent. Throughput is the
// number of accepted spans until drained, per second. CPU time is the daemon's from beginning
// to end, including all flushes, divided by the accepted spans: refused spans don't make spans
// cheaper. The age of spans when they are counted is sampled by the daemon for its own metrics,
// so reading it adds no cost per span.
//
// # Concurrency and limits
//
// One goroutine drives a run and one reads the daemon's log; one per tracer waits for its
// result. Memory is bounded per connection: a buffer and some thousand encoded spans. Every
// wait has a limit, and reaching it is reported. Every started process ends with the run, even
// if the run fails.
//
// Of the daemon's packages it imports those that it needs to talk to a daemon (wire, client),
// to count recorded requests (traces), to find the daemon's process (socket) and to parse its
// accounting (health); standin is the mock agent. Only the command line imports bench. Packages
// below lab/bench are shared with the comparisons in lab/peers.
package bench
