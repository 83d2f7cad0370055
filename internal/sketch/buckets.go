package sketch

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
