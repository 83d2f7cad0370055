// Command pod writes the whole bill of a pod: what a request takes of the processor and of
// memory in the application, the daemon and the agent together, for each way to have its
// statistics counted.
//
//	make bench-pod-java                       # the cells in Java, with two tracers
//	make bench-pod-others                     # those in Python and Go
//	make bench-pod-java ONLY=64 WAYS=OTel     # cells and ways whose names match
//	make bench-pod-others QUICK=1 ONLY=go     # few slices, to see that it works
//	make bench-pod-others TURNS=3             # the middle of three
//	make bench-docs FILE=docs/pod.md          # all, and the tables written into the document
//
// A cell is an application, its heap and a load; each of its ways is a side, with processes of its
// own, and all sides live at the same time. They are warmed up together, get the load of one whole
// interval of statistics together, and then take turns: the load is with one of them for a
// slice of a second, round by round in changing order, so that all meet the same machine. Twenty seconds
// pass before the bill begins, because agents hold statistics for so long. Requests are
// sent at a fixed rate, whatever their answers do, and are timed from when they were due.
//
// The bill has all that a side's processes took from its beginning to its end, in the slices of others
// too; but what they take while nothing comes is on it for their own slices only. What sends the
// requests, and what stands in the place of Datadog's own servers, is this process, which is
// on no bill. The agent is the trace agent's own code, whole, as a process.
//
// Every request counts: those sent, from first to last, against those that the
// agent's statistics have when all has ended. What is missing is a figure of the tables;
// more than was sent is an error.
//
// One goroutine does all in order, and starts every process; what all sides do at once has one for
// each meanwhile. Beside them are a load's connections and the back ends' servers.
// Bounds: a slice lasts at most three times as long as it should, a warm-up's piece of three
// seconds at most thirty, a process listens within five minutes and ends within one.
package main
