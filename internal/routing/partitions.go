package routing

import "fmt"

// MaxPartitions bounds the parts that the key space is cut into: enough that the hash levels
// thousands of aggregates over the cores of a large machine, few enough that a routing lies in
// a core's cache.
const MaxPartitions = 4096

// density is up to how many live aggregates a drainer each has a partition of its own, and
// beyond which two share one.
const density = 25

// policy is how the number of partitions follows the aggregates, as the status shows it.
var policy = fmt.Sprintf("adaptive:%d", density)

// partitionsFor is how many partitions so many drainers have while so many aggregates live: a
// power of two, so that a mask finds a key's.
func partitionsFor(drainers, aggregates int) int {
	wanted, dense := max(drainers, aggregates), density*drainers
	if aggregates > dense {
		wanted = dense + (aggregates-dense)/2
	}
	partitions := 1
	for partitions < min(wanted, MaxPartitions) {
		partitions *= 2
	}
	return partitions
}

// capacityOf is the most aggregates for which so many partitions are enough.
func capacityOf(partitions, drainers int) int {
	dense := density * drainers
	switch {
	case partitions >= MaxPartitions:
		return int(^uint(0) >> 1)
	case partitions < dense:
		return partitions
	}
	return dense + 2*(partitions-dense) + 1
}
