// Command pod writes the whole bill of a pod: what a request takes of the processor and of
// memory in the application, the daemon and the agent together, for each way to have its
// statistics counted.
//
//	make bench-pod                      # all, 35 minutes
//	make bench-pod ONLY='java 64'       # the cells whose names match
//	make bench-pod QUICK=1 ONLY=go      # short windows, to see that it works
//	make bench-pod TURNS=3              # the middle of three, 105 minutes
//	make bench-docs FILE=docs/pod.md    # all, and the tables written into the document
//
// A cell is an application, its heap and a load; each way of a cell has a turn of its own, with
// all processes new, and the turns of a cell follow each other. A turn warms its
// application up, and bills a window of steady load behind that: requests are sent at a
// fixed rate, whatever their answers do, and are timed from when they were due. What
// sends them, and what stands in the place of Datadog's own servers, is this process,
// which is on no bill. The agent is the trace agent's own code, whole, as a process.
//
// Every turn counts: the requests sent, from first to last, against those that the
// agent's statistics have when all has ended. What is missing is a figure of the tables;
// more than was sent is an error.
//
// One goroutine does all in order, but for a load's connections and the back end's server.
// Bounds: a window lasts at most three times as long as it should, a process ends within a minute.
package main
