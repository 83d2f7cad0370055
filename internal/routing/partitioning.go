package routing

import "fmt"

// MaxPartitions bounds the parts that the key space is cut into, whatever the
// policy says: enough that the hash levels thousands of aggregates over the
// cores of a large machine, few enough that a routing lies in a core's cache.
const MaxPartitions = 4096

// DefaultDensity is up to how many live aggregates a drainer each has a
// partition of its own, and beyond which two share one.
const DefaultDensity = 25

// Partitioning is the policy for the number of partitions. Exactly one of its
// fields is set.
type Partitioning struct {
	Adaptive int // grows with the live aggregates, of that density
	Fixed    int // that many: of a model, which says what goes where
}

// String is the policy as the status shows it.
func (p Partitioning) String() string {
	if p.Fixed > 0 {
		return fmt.Sprintf("fixed:%d", p.Fixed)
	}
	return fmt.Sprintf("adaptive:%d", p.Adaptive)
}

// Check says what is unusable.
func (p Partitioning) Check() error {
	set := 0
	for _, n := range [...]int{p.Adaptive, p.Fixed} {
		if n < 0 || n > MaxPartitions {
			return fmt.Errorf("BUG: the partitions, %s, are not between 1 and %d", p, MaxPartitions)
		}
		if n > 0 {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("BUG: %d policies for the number of partitions", set)
	}
	return nil
}

// Count is how many partitions so many drainers have while so many aggregates
// live: a power of two, so that a mask finds a key's.
func (p Partitioning) Count(drainers, aggregates int) int {
	partitions := 1
	for partitions < min(p.wanted(drainers, aggregates), MaxPartitions) {
		partitions *= 2
	}
	return partitions
}

func (p Partitioning) wanted(drainers, aggregates int) int {
	if p.Fixed > 0 {
		return p.Fixed
	}
	dense := p.Adaptive * drainers
	if aggregates <= dense {
		return max(drainers, aggregates)
	}
	return dense + (aggregates-dense)/2
}

// capacity is the most aggregates for which so many partitions are enough.
func (p Partitioning) capacity(drainers, partitions int) int {
	const any = int(^uint(0) >> 1)
	if p.Adaptive == 0 || partitions >= MaxPartitions {
		return any
	}
	dense := p.Adaptive * drainers
	if partitions < dense {
		return partitions
	}
	return dense + 2*(partitions-dense) + 1
}
