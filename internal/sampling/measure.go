package sampling

import (
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// LeftBytes is the most that is left of a body of that length where some of its traces go on:
// each span may have a tracestate where it had none.
func LeftBytes(body int) int { return body + spantable.MaxSpans(body)*raisedBytes }

// raisedBytes is by how much a span may become longer: by the tag and the length of a
// tracestate, what is written into it, and the length of what it is in.
const raisedBytes = 2 + tracestate.GrowthBytes + 6

// Measure finds out what is left of a request: of a Keeping the traces that go on, all where
// there is none. If isMarked, each resource of which a span goes on says then that its spans are
// counted, or keeps what it says where they were counted before. A request that was not read
// goes on as it is.
func (s *Sample) Measure(r *otlp.Request, k *Keeping, isMarked bool) (left Left) {
	s.request, s.threshold, s.fates = r, 0, s.fates[:0]
	left.IsWhole = true
	if left.Size = len(r.Body); r.Err() != nil {
		return left
	}
	for range r.Spans {
		s.fates = append(s.fates, goesOn)
	}
	if k != nil {
		s.threshold = tracestate.ThresholdOf(k.Share)
		left.IsWhole = s.judge(k)
		left.Kept, left.Gone = s.tally()
	}
	s.resources = s.resources[:0]
	for i := range r.Resources {
		of, one := &r.Resources[i], resourceLeft{}
		if isMarked && !of.IsCounted && r.HasSpans(of) {
			one.markedSize, one.isMarked = marked(r.Bytes(of.Said))
		}
		s.resources = append(s.resources, one)
		left.IsWhole = left.IsWhole && !one.isMarked
	}
	if !left.IsWhole {
		left.Size = s.measure()
	}
	return left
}
