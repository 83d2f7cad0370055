package sampling

import (
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// of is the trace with an id. It is good until the next.
func (t *traces) of(high, low uint64) *trace {
	number := t.numbers.Of(high, low)
	if number == len(t.all) {
		t.all = append(t.all, trace{})
	}
	return &t.all[number]
}

// judge decides about each span. It reports whether all go on as they are.
func (s *Sample) judge(k *Keeping) (isWhole bool) {
	r := s.request
	s.traces.numbers.Reset(len(r.Spans))
	s.traces.all = s.traces.all[:0]
	for i := range r.Spans {
		span, place := &r.Spans[i], &r.Places[i]
		t := s.traces.of(place.TraceHigh, place.TraceLow)
		isSlow := k.Slow > 0 && span.Parent == 0 && span.Duration >= uint64(k.Slow)
		t.isWanted = t.isWanted || isSlow || k.Errors && span.Status == spantable.StatusError
	}
	isWhole = true
	for i := range r.Spans {
		place := &r.Places[i]
		t := s.traces.of(place.TraceHigh, place.TraceLow)
		if !t.isWanted && s.threshold > 0 {
			s.fates[i] = fateOf(s.states.Read(r.Bytes(place.State)), place.TraceLow, s.threshold)
		}
		isWhole = isWhole && s.fates[i] == goesOn
		t.isKept = t.isKept || s.fates[i] != ended
	}
	return isWhole
}

// fateOf is that of a span with a tracestate, whose trace's id ends in the 64 bits of low.
func fateOf(state *tracestate.State, low, threshold uint64) fate {
	randomness := low & (tracestate.Never - 1)
	if state.HasRandomness {
		randomness = state.Randomness
	}
	switch {
	case state.HasAtLeast(threshold):
		return goesOn
	case randomness >= threshold:
		return raised
	}
	return ended
}

// tally counts what was judged. A trace of which a span goes on is kept.
func (s *Sample) tally() (kept, gone Tally) {
	for _, f := range s.fates {
		if f == ended {
			gone.Spans++
		}
	}
	for i := range s.traces.all {
		if s.traces.all[i].isKept {
			kept.Traces++
		}
	}
	kept.Spans, gone.Traces = len(s.fates)-gone.Spans, len(s.traces.all)-kept.Traces
	return kept, gone
}
