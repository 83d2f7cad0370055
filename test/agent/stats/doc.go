// Package stats holds the daemon against the real trace agent: the agent runs
// within the test, on a Unix socket, with what it would send to the backend
// captured, and the daemon is the built program beside it.
//
// The same spans go two ways. As traces they go to the agent, whose own
// concentrator counts them; as snapshots they go through our client and the
// daemon, and reach the agent as client-computed statistics. Both ways end in a
// capture of the same shape, and those must be equal: group by group the
// counts, the sums and every bin.
//
//	spans --traces---------------------------> agent: concentrator --> computed
//	      --snapshots--> daemon --> front --> agent: aggregator ----> received
//
// Between daemon and agent stands the front, a proxy of ours. It keeps each
// request as it was written, and misbehaves where a test asks it to, so that
// what the daemon believes can be laid beside what the real agent counted.
package stats
