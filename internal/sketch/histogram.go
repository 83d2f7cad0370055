package sketch

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
