package sketch

import "math"

// Histogram is a distribution of durations as OpenTelemetry has it: a base-2 exponential
// histogram of seconds. For stores that count in a CommonGrid it has, bucket for bucket, the
// counts that the OpenTelemetry SDK would have of the same truncated durations in seconds.
//
// Statistics that tracers have counted have no durations any more, and a bin does not
// determine a bucket. So each bin is counted in the bucket of the duration that its mapping
// gives for the bin, which is within the mapping's accuracy of all durations in it. The same
// holds for a bin of a store that counts in the AgentGrid.
//
// It is large and flat, and reused for the next key. The zero value is empty.
type Histogram struct {
	zeros      uint64
	counts     [allBuckets]uint64 // at MaxScale
	first, end int                // of the counts that may not be 0
	lowered    []uint64           // what Buckets returned
	mapping    lastMapping
}

// Reset empties the histogram, at the cost of what was in it.
func (h *Histogram) Reset() {
	clear(h.counts[h.first:h.end])
	h.zeros, h.first, h.end = 0, 0, 0
}

// AddZeros counts spans that took no time.
func (h *Histogram) AddZeros(spans uint64) { h.zeros += spans }

// AddBins counts spans that a tracer has counted by a mapping that the library knows.
func (h *Histogram) AddBins(m Mapping, bins []Bin) {
	library := h.mapping.indexesOf(m)
	for _, bin := range bins {
		h.add(bucketOf(library.Value(int(bin.Index))), bin.Spans)
	}
}

func (h *Histogram) addCells(g *Grid, first uint, counters []uint32) {
	for i, spans := range counters {
		if spans > 0 {
			h.add(int(g.buckets[first+uint(i)]), uint64(spans))
		}
	}
}

func (h *Histogram) add(bucket int, spans uint64) {
	if spans == 0 {
		return
	}
	at := bucket - lowestBucket
	h.counts[at] += spans
	if h.end == 0 {
		h.first = at
	}
	h.first, h.end = min(h.first, at), max(h.end, at+1)
}

// Buckets are what was counted, at the finest scale at which they are most at most, of which
// there must be two. Counts is valid until the next call.
func (h *Histogram) Buckets(most int) Buckets {
	b := Buckets{Scale: MaxScale, Zeros: h.zeros, Spans: h.zeros, Counts: h.lowered[:0]}
	if h.end == 0 {
		return b
	}
	all := stretch{MaxScale, h.first + lowestBucket, h.end - 1 + lowestBucket}
	all.fit(most)
	b.Scale, b.Offset = int32(all.scale), int32(all.lowest)
	b.Counts = append(b.Counts, make([]uint64, all.length())...)
	b.pour(h.counts[h.first:h.end], MaxScale, h.first+lowestBucket)
	for _, spans := range b.Counts {
		b.Spans += spans
	}
	h.lowered = b.Counts
	return b
}

// DefaultMaxBuckets is how many buckets the OpenTelemetry SDK gives a histogram.
const DefaultMaxBuckets = 160

// Buckets are a histogram's at one scale: of Counts[i] those that took longer than
// 2^((Offset+i) / 2^Scale) seconds and not longer than 2^((Offset+i+1) / 2^Scale). Without
// any their scale is MaxScale.
type Buckets struct {
	Scale  int32
	Offset int32
	Counts []uint64 // the first and the last are not 0
	Zeros  uint64   // spans that took no time
	Spans  uint64   // in all
}

// Add adds others, and lowers the scale until there are most at most. It is exact: what a
// sequence of histograms adds up to is what one would have counted of all their spans.
func (b *Buckets) Add(other *Buckets, most int) {
	b.Zeros += other.Zeros
	b.Spans += other.Spans
	if len(other.Counts) == 0 {
		return
	}
	both := b.stretch().joined(other.stretch())
	both.fit(most)
	if both != b.stretch() {
		sum := Buckets{
			Scale: int32(both.scale), Offset: int32(both.lowest),
			Counts: make([]uint64, both.length()),
		}
		sum.pour(b.Counts, int(b.Scale), int(b.Offset))
		b.Scale, b.Offset, b.Counts = sum.Scale, sum.Offset, sum.Counts
	}
	b.pour(other.Counts, int(other.Scale), int(other.Offset))
}

// pour adds counts from an offset on, at a scale that is at least as fine.
func (b *Buckets) pour(counts []uint64, scale, offset int) {
	halvings := scale - int(b.Scale)
	for i, spans := range counts {
		b.Counts[(offset+i)>>halvings-int(b.Offset)] += spans
	}
}

func (b *Buckets) stretch() stretch {
	return stretch{int(b.Scale), int(b.Offset), int(b.Offset) + len(b.Counts) - 1}
}

// stretch is the buckets from the lowest to the highest in use, at a scale; it is empty
// where the highest is below the lowest.
type stretch struct{ scale, lowest, highest int }

func (s stretch) length() int { return s.highest - s.lowest + 1 }

// fit lowers the scale to the finest at which most are enough. Each step joins two
// neighbours, as in the SDK.
func (s *stretch) fit(most int) {
	for s.length() > max(most, 2) {
		s.halve()
	}
}

func (s *stretch) halve() { s.scale, s.lowest, s.highest = s.scale-1, s.lowest>>1, s.highest>>1 }

// joined is the stretch of both, of which the other is not empty, at the lower scale.
func (s stretch) joined(other stretch) stretch {
	if s.length() <= 0 {
		return other
	}
	for s.scale > other.scale {
		s.halve()
	}
	for other.scale > s.scale {
		other.halve()
	}
	return stretch{s.scale, min(s.lowest, other.lowest), max(s.highest, other.highest)}
}

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
