// Package stats compares the daemon with the real trace agent. The agent runs within the test, on a
// Unix socket, with its backend output captured. The daemon is the built binary.
//
// The same spans take two paths. As traces they reach the agent, whose own concentrator counts them. As
// snapshots they reach the daemon through the client, and then the agent as client-computed statistics.
// Both captures have the same format and must be equal: the counts, the sums and every bin of each
// group.
//
//	spans --traces---------------------------> agent: concentrator --> computed
//	      --snapshots--> daemon --> front --> agent: aggregator ----> received
//
// The front is a proxy of this package between daemon and agent. It records each request as sent, and
// misbehaves on demand, so that the daemon's accounting can be compared with the real agent's counts.
package stats
