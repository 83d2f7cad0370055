package fleet

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// distribution is a base-2 exponential histogram of any source. Bucket i counts durations in the
// interval (2^(i/2^scale), 2^((i+1)/2^scale)] seconds.
type distribution struct {
	scale   int
	count   uint64
	zeros   uint64
	sum     float64
	buckets map[int]uint64 // non-empty buckets
}

// finest is the scale of an empty distribution.
const finest = 20

func newDistribution() *distribution {
	return &distribution{scale: finest, buckets: map[int]uint64{}}
}

// at returns the distribution at a coarser or equal scale. Each of its buckets consists of whole
// buckets of d.
func (d *distribution) at(scale int) *distribution {
	if scale > d.scale {
		panic(fmt.Sprintf("BUG: buckets of scale %d say nothing of scale %d", d.scale, scale))
	}
	coarse := &distribution{
		scale: scale, count: d.count, zeros: d.zeros, sum: d.sum,
		buckets: map[int]uint64{},
	}
	for i, n := range d.buckets {
		coarse.buckets[i>>(d.scale-scale)] += n
	}
	return coarse
}

// add adds another distribution at the coarser of the two scales.
func (d *distribution) add(other *distribution) {
	scale := min(d.scale, other.scale)
	sum := d.at(scale)
	for i, n := range other.at(scale).buckets {
		sum.buckets[i] += n
	}
	sum.count, sum.zeros, sum.sum = d.count+other.count, d.zeros+other.zeros, d.sum+other.sum
	*d = *sum
}

// differs describes how two distributions differ at the coarser of their scales, or returns "". Sums
// may differ by one part in 512, because some sources truncate durations.
func (d *distribution) differs(other *distribution) string {
	scale := min(d.scale, other.scale)
	a, b := d.at(scale), other.at(scale)
	switch {
	case a.count != b.count || a.zeros != b.zeros:
		return fmt.Sprintf("count %d and %d, zeros %d and %d", a.count, b.count, a.zeros, b.zeros)
	case !maps.Equal(a.buckets, b.buckets):
		return fmt.Sprintf("at scale %d the buckets are\n%s and\n%s", scale, a.text(), b.text())
	case math.Abs(a.sum-b.sum) > max(a.sum, b.sum)/512:
		return fmt.Sprintf("the sums are %g and %g", a.sum, b.sum)
	}
	return ""
}

func (d *distribution) text() string {
	var s strings.Builder
	for _, i := range slices.Sorted(maps.Keys(d.buckets)) {
		fmt.Fprintf(&s, "%d:%d ", i, d.buckets[i])
	}
	return s.String()
}

// fromPoint converts an OTLP data point.
func fromPoint(p pmetric.ExponentialHistogramDataPoint) *distribution {
	d := &distribution{
		scale: int(p.Scale()), count: p.Count(), zeros: p.ZeroCount(), sum: p.Sum(),
		buckets: map[int]uint64{},
	}
	for i, n := range p.Positive().BucketCounts().All() {
		if n > 0 {
			d.buckets[int(p.Positive().Offset())+i] = n
		}
	}
	return d
}

// Each bucket at a coarser scale consists of exactly the buckets that it covers.
func TestDistribution_DownscalingIsExact(t *testing.T) {
	d := &distribution{
		scale: 5, count: 7, zeros: 1, sum: 3,
		buckets: map[int]uint64{-33: 1, -32: 1, -1: 1, 0: 1, 31: 1, 32: 1},
	}
	want := map[int]uint64{-2: 1, -1: 2, 0: 2, 1: 1}
	if got := d.at(0); !maps.Equal(got.buckets, want) {
		t.Errorf("%v, want %v", got.buckets, want)
	}
	sum := newDistribution()
	sum.add(d)
	sum.add(d.at(3))
	if twice := d.at(3); sum.scale != 3 || sum.count != 14 || sum.buckets[0] != 2*twice.buckets[0] ||
		sum.differs(twice) == "" {
		t.Errorf("the sum is %+v", sum)
	}
}
