// Package agent holds the daemon against the real trace agent: the agent runs
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
//
// It is a module of its own: the agent's dependencies never enter the daemon's.
// `go mod tidy` fails here, because the agent's own tests import a module that
// the proxy does not have; `go mod tidy -e` writes all that is needed.
package agent
