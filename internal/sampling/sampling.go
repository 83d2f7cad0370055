// Package sampling decides which spans of a body that was counted go on, and writes what is left
// of it.
//
// # OTLP: which spans go on
//
// A Keeping samples consistently, as OpenTelemetry's tracestate-probability-sampling says. A
// trace's randomness R is the rv of its tracestate, else the lowest 56 bits of its id, and a span
// goes on if R is at least the threshold T of the share that is wanted. So all pods decide alike,
// and so does a sampler behind us. Its tracestate then says th:T. A span with a higher threshold
// is one of fewer already: it goes on as it is.
//
// A trace of which the request has a span with an error, or a root that was slow, goes on whole,
// whatever its randomness, and its spans keep the threshold that they came with. That is honest
// because it is the probability with which they were kept: nothing was left out here of traces
// like these. It would not be to write th:T into those whose R is high enough as well, since
// errors would then count for more than there were. What the same trace has in another request,
// or in another pod, is judged by what is seen there; each span's threshold is true of that span,
// so sums over spans are right, but the trace may then go on in part.
//
// A span whose tracestate cannot be read is judged like one that has none, and goes on with one that
// says for how many it stands; of one that is full what stands last makes room for that.
//
// What goes on may say of each resource that its spans are counted (mark.go), by the attribute
// that the agent's ingest reads.
//
// # Bounds
//
// The forwarded part of a body is no longer than SelectionBytes. Bytes is what a Sample takes.
//
// # Threading
//
// One goroutine at a time uses a Sample. Its memory is used again for the next body, and nothing
// is allocated a span once it is warm. A Keeping never changes.
package sampling

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Sample is the part of one OTLP request that is forwarded: Select chooses it, and AppendSelected writes it.
type Sample struct {
	request   *otlp.Request
	threshold uint64 // that spans are raised to
	states    tracestate.Memo
	traces    traces
	fates     []fate         // by span
	scopes    []int          // by scope, how long its message will be, nothingLeft where it ends
	resources []resourceLeft // by resource
	raised    []byte         // a tracestate with another threshold
}

// fate is what becomes of a span.
type fate uint8

const (
	goesOn fate = iota // as it is
	raised             // goes on with the threshold of the share
	ended              // goes no further
)

const fateBytes = int(unsafe.Sizeof(goesOn))

// traces are those of one request.
type traces struct {
	numbers spantable.TraceNumbers
	all     []trace // by number
}

// trace is what is known of one.
type trace struct {
	isWanted bool // for an error, or because it was slow
	isKept   bool // at least one span of it
}

const traceBytes = int(unsafe.Sizeof(trace{}))

// nothingLeft is the size of a message that ends.
const nothingLeft = -1

// resourceLeft is what becomes of a resource.
type resourceLeft struct {
	size       int // of its message with its scopes, nothingLeft where it ends
	isMarked   bool
	markedSize int // of the message that says who it is
}

// Bytes is the most that a Sample takes for bodies of that length, which have as many resources
// and scopes as spans at most.
func Bytes(body int) int {
	const parts = int(unsafe.Sizeof(resourceLeft{}) + unsafe.Sizeof(0))
	const each = spantable.TraceNumberBytes + traceBytes + fateBytes + parts
	return int(spantable.Grown * float64(spantable.MaxSpans(body)*each))
}

// IsSelected reports whether a span is forwarded. Without a call of Select every span is.
func (s *Sample) IsSelected(span int) bool { return len(s.fates) == 0 || s.fates[span] != ended }

// Release lets go of the request.
func (s *Sample) Release() {
	s.request, s.fates = nil, s.fates[:0]
	s.states.Forget()
}

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

// Keeping says which traces go on.
type Keeping struct {
	Share  float64       // of all traces, from 0 to 1
	Errors bool          // also those in which the request has a span with an error
	Slow   time.Duration // also those whose root took as long, unless it is 0
}

// ParseKeeping reads which traces go on: a share, and what goes on beside it, such as
// 0.05,errors,slow:500ms.
func ParseKeeping(text string) (k Keeping, err error) {
	words := strings.Split(text, ",")
	if k.Share, err = strconv.ParseFloat(words[0], 64); err != nil || !(k.Share >= 0 && k.Share <= 1) {
		return k, fmt.Errorf("parse otlp-keep: %q does not begin with a share of traces, from 0 to 1; give "+
			"0.05, or 0.05,errors,slow:500ms", text)
	}
	for _, word := range words[1:] {
		duration, isSlow := strings.CutPrefix(word, "slow:")
		if isSlow {
			k.Slow, err = time.ParseDuration(duration)
		}
		switch {
		case word == "errors":
			k.Errors = true
		case !isSlow || err != nil || k.Slow <= 0:
			return k, fmt.Errorf("parse otlp-keep: %q is neither errors nor slow:500ms", word)
		}
	}
	return k, nil
}

// Tally is how many traces there are, and how many spans.
type Tally struct{ Traces, Spans int }

// Selection describes the part of a request that is forwarded.
type Selection struct {
	IsUnchanged         bool  // the whole request, as it came
	Size                int   // bytes
	Sampled, SampledOut Tally // traces that are forwarded and that are not; 0 without a Keeping
}

// SelectionBytes is the maximum size of the part of a body of that length that is forwarded: each span may get a
// tracestate.
func SelectionBytes(body int) int { return body + spantable.MaxSpans(body)*raisedBytes }

// raisedBytes is by how much a span may become longer: by the tag and the length of a
// tracestate, what is written into it, and the length of what it is in.
const raisedBytes = 2 + tracestate.GrowthBytes + 6

// Select chooses the part of a request that is forwarded: the traces that a Keeping samples, or all of them without
// one. If isMarked, each of its resources gets the mark that its spans are counted, unless it has one. A request that
// could not be read is forwarded unchanged.
func (s *Sample) Select(r *otlp.Request, k *Keeping, isMarked bool) (part Selection) {
	s.request, s.threshold, s.fates = r, 0, s.fates[:0]
	part.IsUnchanged = true
	if part.Size = len(r.Body); r.Err() != nil {
		return part
	}
	for range r.Spans {
		s.fates = append(s.fates, goesOn)
	}
	if k != nil {
		s.threshold = tracestate.ThresholdOf(k.Share)
		part.IsUnchanged = s.judge(k)
		part.Sampled, part.SampledOut = s.tally()
	}
	s.resources = s.resources[:0]
	for i := range r.Resources {
		of, one := &r.Resources[i], resourceLeft{}
		if isMarked && !of.IsCounted && r.HasSpans(of) {
			one.markedSize, one.isMarked = marked(r.Bytes(of.Said))
		}
		s.resources = append(s.resources, one)
		part.IsUnchanged = part.IsUnchanged && !one.isMarked
	}
	if !part.IsUnchanged {
		part.Size = s.measure()
	}
	return part
}
