package oteltraces

import (
	"errors"
	"fmt"
	"time"
)

// Keeping says which traces go on.
type Keeping struct {
	Share  float64       // of all traces, from 0 to 1
	Errors bool          // also those in which the request has a span with an error
	Slow   time.Duration // also those whose root took as long, unless it is 0
}

// Check says what is unusable.
func (k *Keeping) Check() (err error) {
	if !(k.Share >= 0 && k.Share <= 1) {
		err = fmt.Errorf("check share of traces: %v is none, it is from 0 to 1", k.Share)
	}
	if k.Slow < 0 {
		err = errors.Join(err, fmt.Errorf("check slow traces: %v is less than 0", k.Slow))
	}
	return err
}

// Tally is how many traces there are, and how many spans.
type Tally struct{ Traces, Spans int }

// fate is what becomes of a span.
type fate uint8

const (
	goesOn fate = iota // as it is
	raised             // goes on with the threshold of the share
	ended              // goes no further
)

// tally counts what was judged. A trace of which a span goes on is kept.
func (w *walked) tally() (kept, gone Tally) {
	p := &w.payload
	for i := range p.records {
		if p.records[i].fate == ended {
			gone.Spans++
		}
	}
	for i := range w.traces.traces {
		if w.traces.traces[i].isKept {
			kept.Traces++
		}
	}
	kept.Spans, gone.Traces = len(p.records)-gone.Spans, len(w.traces.traces)-kept.Traces
	return kept, gone
}

// judge decides about each span. It reports whether all go on as they are.
func (w *walked) judge(k *Keeping) (isWhole bool) {
	p := &w.payload
	w.traces.reset(len(p.records))
	for i := range p.records {
		rec := &p.records[i]
		t := &w.traces.traces[w.traces.of(p.idOf(rec))]
		if k.Errors && rec.code == codeError || k.Slow > 0 && rec.isRoot && rec.duration() >= uint64(k.Slow) {
			t.isWanted = true
		}
	}
	isWhole = true
	for i := range p.records {
		rec := &p.records[i]
		_, low := p.idOf(rec)
		t := &w.traces.traces[w.traces.of(p.idOf(rec))]
		if rec.fate = goesOn; !t.isWanted && w.threshold > 0 {
			rec.fate = w.states.read(rec.state.of(p.body)).fate(low, w.threshold)
		}
		isWhole = isWhole && rec.fate == goesOn
		t.isKept = t.isKept || rec.fate != ended
	}
	return isWhole
}

// fate is that of a span with this tracestate, whose trace's id ends in these 64 bits.
func (s *tracestate) fate(low, threshold uint64) fate {
	randomness := low & (never - 1)
	if s.hasRandomness {
		randomness = s.randomness
	}
	switch {
	case !s.takes() || s.hasThreshold && s.threshold >= threshold:
		return goesOn
	case randomness >= threshold:
		return raised
	}
	return ended
}
