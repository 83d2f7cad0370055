// Package bench measures the program from outside, as a pod would meet it: the
// daemon is a process of its own, the tracers are processes of their own, and
// what they cost is what the kernel says that they cost.
//
// # Who runs
//
//	this process   starts the others, is the stand-in agent, reads figures
//	daemon         `spanstatsd run`, or one that runs already
//	tracers        `spanstatsd-lab bench tracer`, one process a producer
//
// A tracer is told what to do in JSON on its standard input, says when it has
// connected, starts at the next word, stops early when the input ends, and answers
// with what it did. Two kinds speak our protocol. "wire" writes messages that were encoded before
// and only stamps the time of their spans, so that it is no bottleneck and the
// daemon is what is measured. "client" links the real client and publishes
// through it, so that what a tracer pays is what is measured.
//
// A third kind, "http", is for the workload of traces alone: it sends a request that a
// real tracer has sent to the agent's API, again and again, with its spans moved to
// now (traces.go). There the daemon has two loads, requests that it only hands on and
// requests that it counts as well; they take turns with one another and with a bare relay
// (package relay) in the daemon's place, so that what each does besides is the difference of
// neighbours.
//
// A fourth, "bare", does all that a "client" does but publish. It runs beside one, at the
// rates that pods have, so that what publishing costs a process is the difference
// (rates.go).
//
// # What a figure is
//
// A run begins when the tracers are told to start, is drained when the daemon
// has counted or dropped the last span, and ends when it has reported to the
// agent. Throughput is accepted spans until drained. CPU time is the daemon's
// from beginning to end, the flushes in between and the last one included,
// divided by the spans accepted: refusing spans makes no span cheaper. How old
// spans were when they were counted is what the daemon samples for its own
// metrics, so looking costs the way of a span nothing.
//
// # Threading and bounds
//
// One goroutine drives a run and one reads the daemon's log; each tracer has one
// that waits for its answer. Memory is bounded by the connections: a buffer and
// some thousand encoded spans each. Everything that waits has a limit
// and says so when it is reached. Every process that was started ends with
// the run, however that ends.
//
// It imports the rooms that it needs to speak with a daemon (wire, client), to count what is
// recorded (traces), to stand behind one (standin), to find its process (socket) and to read
// its words (health's books). Only the command line imports it. What it shares with the
// comparisons in lab/peers are the packages below it.
package bench
