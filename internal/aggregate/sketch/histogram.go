package sketch

import "math"

// Histogram is a base-2 exponential histogram of seconds, as defined by OpenTelemetry. For stores
// that count in a CommonGrid, its counts are exactly those that the OpenTelemetry SDK would have
// for the same truncated durations.
//
// Statistics that tracers have counted contain bins instead of durations, and a bin does not
// determine a bucket. Each bin counts as the duration that represents it in its mapping, which is
// within the mapping's accuracy of all durations in it. The same applies to bins of a store that
// counts in the AgentGrid.
//
// A Histogram is large and flat, and is reused for the next key. The zero value is empty.
type Histogram struct {
	zeros        uint64
	counts       [allBuckets]uint64 // counts at MaxScale
	first, end   int                // range of the counts that may not be 0
	countsBuffer []uint64           // memory of what Buckets returned
	mappings     mappingCache
}

// Reset empties the histogram. Its cost is proportional to the range in use.
func (h *Histogram) Reset() {
	clear(h.counts[h.first:h.end])
	h.zeros, h.first, h.end = 0, 0, 0
}

// AddZeros counts spans with a duration of 0.
func (h *Histogram) AddZeros(spans uint64) { h.zeros += spans }

// AddBins adds spans that a tracer has counted in bins of the mapping m. All spans in a bin count as if
// they had the duration that m assigns to the bin. AddBins panics if m is invalid.
func (h *Histogram) AddBins(m Mapping, bins []Bin) {
	indexMapping := h.mappings.indexMappingOf(m)
	for _, bin := range bins {
		nanoseconds := indexMapping.Value(int(bin.Index))
		h.add(bucketOf(nanoseconds), bin.Spans)
	}
}

// addCells adds the counts of neighboring cells of a grid, the first of which is first.
func (h *Histogram) addCells(g *Grid, first uint, counters []uint32) {
	for i, spans := range counters {
		if spans > 0 {
			h.add(int(g.buckets[first+uint(i)]), uint64(spans))
		}
	}
}

// add counts spans in the bucket with the given index at MaxScale.
func (h *Histogram) add(bucket int, spans uint64) {
	if spans == 0 {
		return
	}
	at := bucket - lowestBucket
	h.counts[at] += spans
	isFirst := h.end == 0
	if isFirst {
		h.first, h.end = at, at+1
		return
	}
	h.first = min(h.first, at)
	h.end = max(h.end, at+1)
}

// Buckets returns the counts at the finest scale at which they fit into limit buckets. limit must be at
// least two. The slice in the result is valid until the next call.
func (h *Histogram) Buckets(limit int) Buckets {
	b := Buckets{Scale: MaxScale, Zeros: h.zeros, Spans: h.zeros, Counts: h.countsBuffer[:0]}
	isEmpty := h.end == 0
	if isEmpty {
		return b
	}
	inUse := h.bucketRange()
	limited := inUse.limitedTo(limit) // has a lower scale if necessary
	b.Scale = int32(limited.scale)
	b.Offset = int32(limited.lowest)
	b.Counts = append(b.Counts, make([]uint64, limited.length())...) // zeros; allocates only if the buffer is too small
	b.addCounts(h.counts[h.first:h.end], inUse.scale, inUse.lowest)  // converts the counts to b.Scale
	for _, spans := range b.Counts {
		b.Spans += spans
	}
	h.countsBuffer = b.Counts
	return b
}

// bucketRange returns the range of the buckets that may not be 0. The histogram must not be empty.
func (h *Histogram) bucketRange() bucketRange {
	lowest := lowestBucket + h.first // h.counts[0] is the count of lowestBucket
	highest := lowestBucket + h.end - 1
	return bucketRange{MaxScale, lowest, highest}
}

// DefaultMaxBuckets is the maximum number of buckets of a histogram in the OpenTelemetry SDK.
const DefaultMaxBuckets = 160

// Buckets are the buckets of a histogram at one scale. Counts[i] is the number of durations greater
// than 2^((Offset+i) / 2^Scale) seconds and at most 2^((Offset+i+1) / 2^Scale) seconds. Empty
// Buckets have MaxScale.
type Buckets struct {
	Scale  int32
	Offset int32
	Counts []uint64 // the first and the last are not 0
	Zeros  uint64   // spans with a duration of 0
	Spans  uint64   // total
}

// Add adds the counts of other to b. It lowers the scale of b if other has a lower one, or if the sum
// would have more than limit buckets. The result is the same as that of counting all durations in one
// histogram.
func (b *Buckets) Add(other *Buckets, limit int) {
	b.Zeros += other.Zeros
	b.Spans += other.Spans
	if len(other.Counts) == 0 {
		return
	}
	needed := b.bucketRange().union(other.bucketRange()).limitedTo(limit)
	if needed != b.bucketRange() {
		b.changeRange(needed)
	}
	b.addCounts(other.Counts, int(other.Scale), int(other.Offset))
}

// changeRange moves the counts to the buckets of a range that contains all buckets of b, at the same or a
// lower scale.
func (b *Buckets) changeRange(newRange bucketRange) {
	moved := Buckets{
		Scale: int32(newRange.scale), Offset: int32(newRange.lowest),
		Counts: make([]uint64, newRange.length()),
	}
	moved.addCounts(b.Counts, int(b.Scale), int(b.Offset))
	b.Scale = moved.Scale
	b.Offset = moved.Offset
	b.Counts = moved.Counts
}

// addCounts adds counts that begin at offset. Their scale is at least as fine as that of b.
func (b *Buckets) addCounts(counts []uint64, scale, offset int) {
	halvings := scale - int(b.Scale)
	for i, spans := range counts {
		b.Counts[(offset+i)>>halvings-int(b.Offset)] += spans
	}
}

func (b *Buckets) bucketRange() bucketRange {
	return bucketRange{int(b.Scale), int(b.Offset), int(b.Offset) + len(b.Counts) - 1}
}

// bucketRange is the range from the lowest to the highest bucket in use, at a scale. It is empty if
// highest is less than lowest.
type bucketRange struct{ scale, lowest, highest int }

func (s bucketRange) length() int { return s.highest - s.lowest + 1 }

// limitedTo returns the range at the finest scale at which it has at most limit buckets. As in the SDK, each
// step merges pairs of neighbors.
func (s bucketRange) limitedTo(limit int) bucketRange {
	for s.length() > max(limit, 2) {
		s.halve()
	}
	return s
}

// halve merges pairs of neighboring buckets.
func (s *bucketRange) halve() {
	s.scale--
	s.lowest >>= 1
	s.highest >>= 1
}

// union returns the smallest range that contains all buckets of s and other, at the lower of the two
// scales. s can be empty, but other must not be.
func (s bucketRange) union(other bucketRange) bucketRange {
	isEmpty := s.length() <= 0
	if isEmpty {
		return other
	}
	scale := min(s.scale, other.scale)
	s.lowerScale(scale)
	other.lowerScale(scale)
	return bucketRange{scale, min(s.lowest, other.lowest), max(s.highest, other.highest)}
}

// lowerScale merges pairs of neighboring buckets until the range has the given scale.
func (s *bucketRange) lowerScale(scale int) {
	for s.scale > scale {
		s.halve()
	}
}

// The buckets of a Histogram at MaxScale, 32 per power of two of seconds.
const (
	// MaxScale is the finest scale of a Histogram. At scale 5 a bucket is 2.2 % wide, about as
	// wide as a bin of the agent, so a CommonGrid has fewer than two cells per bin.
	MaxScale     = 5
	lowestBucket = -957 // bucket of 1 ns
	allBuckets   = 2049 // number of buckets up to that of the largest uint64
)

// bucketOf returns the bucket of a duration: k if it is greater than 2^(k/32) s and at most
// 2^((k+1)/32) s. No truncated duration is close enough to a bound for the logarithm to be rounded
// to the other side; a test measures the smallest distance.
func bucketOf(nanoseconds float64) int {
	k := math.Ceil(math.Log2(nanoseconds/1e9)*(1<<MaxScale)) - 1
	return int(min(max(k, lowestBucket), lowestBucket+allBuckets-1))
}
