package sketch

import "math"

// The buckets of a Histogram at MaxScale: 32 to each power of two, of seconds.
const (
	// MaxScale is the finest scale of a Histogram. At 5 a bucket is 2.2 % wide, about as
	// wide as a bin of the agent's, so a CommonGrid has less than two cells for each bin.
	MaxScale     = 5
	lowestBucket = -957 // of 1 ns
	allBuckets   = 2049 // from there to that of the largest uint64
)

// bucketOf is the bucket of so many nanoseconds: k for what is longer than 2^(k/32) s and not
// longer than 2^((k+1)/32) s. No truncated duration is so near to such a bound that a
// logarithm could round it to the other side; a test says how near the nearest is.
func bucketOf(nanoseconds float64) int {
	k := math.Ceil(math.Log2(nanoseconds/1e9)*(1<<MaxScale)) - 1
	return int(min(max(k, lowestBucket), lowestBucket+allBuckets-1))
}
