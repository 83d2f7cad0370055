// Package routing says which drainer counts which part of the key space. It owns the
// partitions, the demand for each of them, and the balancer that levels the drainers. It
// names no key, table, cycle or ring.
package routing
