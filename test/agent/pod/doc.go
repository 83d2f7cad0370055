// Command pod measures what statistics cost a complete pod: processor time and memory per request, in the
// application, the daemon and the agent, for each variant of counting the statistics.
//
//	make bench-pod-java                       # the cells in Java, with two tracers
//	make bench-pod-others                     # those in Python and Go
//	make bench-pod-java ONLY=64 WAYS=OTel     # cells and variants whose names match
//	make bench-pod-others QUICK=1 ONLY=go     # few slices, as a smoke test
//	make bench-pod-others TURNS=3             # median of three
//	make bench-docs FILE=docs/pod.md          # all, and the tables written into the document
//
// A cell is an application with a heap size and a load. For each variant, the cell has a side with
// its own processes. All sides run at the same time. They are warmed up together and receive the load
// of one complete statistics interval together. Then they receive the load in turns, a slice of one second
// each, in rounds of changing order, so that all have the same conditions. The bill begins after twenty
// seconds, because agents hold statistics for that time. Requests are sent at a fixed rate, independent
// of the responses, and latencies are measured from their due time.
//
// The bill contains all processor time of a side's processes from beginning to end, including work
// during the slices of other sides, except that idle usage counts only for the side's own slices. This
// process, which sends the requests and contains the fake Datadog servers, is not part of any bill. The
// agent is the unmodified trace agent in a separate process.
//
// Every request counts: at the end, the number of requests sent is compared with the agent's
// statistics. The tables show the number of missing requests; surplus ones are an error.
//
// One goroutine runs everything in order and starts every process. Actions on all sides at once use a
// temporary goroutine per side. Further goroutines serve the connections of a load and the fake
// servers.
//
// Limits: a slice takes at most three times its planned length, a warm-up piece of three seconds at
// most thirty; a process must listen within five minutes and end within one.
package main
