// Package routing says which drainer counts which part of the key space. It names no
// key, table, cycle or ring.
//
// # What it owns
//
// The key space is cut into partitions by the low bits of a key's hash. A Routing maps
// each partition to its owner, a drainer, or to several, among which each batch chooses
// one at random: then the partition is spread. A publisher reads it through its Route. The
// Balancer counts how much of the traffic each partition is offered (demand), plans an
// assignment that levels the drainers (plan, which is a pure function), and makes it the
// current Routing.
//
// # Why a change needs no coordination
//
// Which drainer counts a key is a matter of load only, never of correctness: every
// drainer has a table in which any key may have a row, and the flush merges rows by key.
// So a change is one store of one pointer. A publisher that still has the old value
// publishes by it, and nothing is wrong; nobody is asked to stop, nothing is handed over,
// and there is nothing to wait for. A key that moves costs one more row in that cycle.
//
// # Threading
//
// A Routing never changes. The current one is written by the Balancer's goroutine alone
// and loaded once a batch by publishers. A Route belongs to one goroutine. Demand
// counters are atomic, and are read by the balancer alone. Stats may be called by anybody.
//
// # Bounds
//
// There are MaxPartitions partitions at most, and as many counters of demand. Publishers
// never wait for the balancer, nor it for them.
package routing
