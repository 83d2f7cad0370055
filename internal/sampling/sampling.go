// Package sampling decides which spans of a counted OTLP request are forwarded, and writes the body
// of the forwarded request.
//
// # Which spans are forwarded
//
// A Policy samples consistently, according to OpenTelemetry's tracestate-probability-sampling. The
// randomness R of a trace is the rv value of its tracestate, or otherwise the lowest 56 bits of its
// ID. A span is forwarded if R is at least the threshold T of the configured share. So all pods,
// and also downstream samplers, make the same decision. The forwarded tracestate contains th:T. A
// span with a higher threshold was sampled at a lower rate already, and is forwarded unchanged.
//
// A trace that has a span with an error, or a slow root, in the request is forwarded completely,
// regardless of its randomness, and its spans keep their thresholds. This is correct, because the
// threshold is the probability with which they were sampled, and no trace like these is dropped
// here. Writing th:T into those whose R is high enough would be wrong, since errors would then be
// overestimated. Spans of the same trace in another request, or in another pod, are decided
// independently. The threshold of each span is correct for that span, so sums over spans are
// correct, but the trace may be forwarded only in part.
//
// A span whose tracestate can't be parsed is treated like one without. It gets a tracestate with
// its threshold; if the tracestate is full, its last entries are removed.
//
// Forwarded resources can be marked as counted (rewrite.go), by an attribute that the agent reads.
//
// # Limits
//
// SelectionBytes is the maximum length of the forwarded body. Bytes is the maximum memory of a
// Sample.
//
// # Concurrency
//
// One goroutine at a time may use a Sample. The next body reuses its memory, so that nothing is
// allocated per span after warm-up. A Policy is immutable.
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

// Sample determines which part of one OTLP request is forwarded. Select makes the decisions, and
// AppendSelected writes the forwarded part.
type Sample struct {
	request   *otlp.Request
	threshold uint64 // threshold of the configured share
	states    tracestate.Memo
	traces    traces
	decisions []decision       // one per span
	scopes    []int            // new length of each scope's message; droppedSize if it is dropped
	resources []resourceResult // one per resource
	raised    []byte           // scratch for a tracestate with another threshold
}

// decision is the decision about a span.
type decision uint8

const (
	forwarded decision = iota // forwarded unchanged
	raised                    // forwarded with the configured threshold
	dropped                   // dropped
)

const decisionBytes = int(unsafe.Sizeof(forwarded))

// traces assigns a state to each trace of one request.
type traces struct {
	numbers spantable.TraceNumbers
	all     []trace // by trace number
}

// trace is the state of one trace.
type trace struct {
	isWanted bool // has an error or is slow, so all of its spans are forwarded
	isKept   bool // at least one of its spans is forwarded
}

const traceBytes = int(unsafe.Sizeof(trace{}))

// droppedSize is the size of a message that is dropped.
const droppedSize = -1

// resourceResult is the decision about a resource.
type resourceResult struct {
	size       int  // new length of its message; droppedSize if it is dropped
	isMarked   bool // the attribute that marks the resource as counted is added
	markedSize int  // new length of its attributes, if marked
}

// Bytes returns the maximum memory of a Sample for bodies of the given length. A body has at most
// as many resources, and as many scopes, as spans.
func Bytes(body int) int {
	const parts = int(unsafe.Sizeof(resourceResult{}) + unsafe.Sizeof(0))
	const perSpan = spantable.TraceNumberBytes + traceBytes + decisionBytes + parts
	return int(spantable.GrowthFactor * float64(spantable.MaxSpans(body)*perSpan))
}

// IsSelected reports whether a span is forwarded. If Select made no decisions, all spans are.
func (s *Sample) IsSelected(span int) bool {
	return len(s.decisions) == 0 || s.decisions[span] != dropped
}

// Release removes the references to the request.
func (s *Sample) Release() {
	s.request, s.decisions = nil, s.decisions[:0]
	s.states.Forget()
}

// get returns the trace with an ID. It is valid until the next call.
func (t *traces) get(high, low uint64) *trace {
	number := t.numbers.NumberOf(high, low)
	if number == len(t.all) {
		t.all = append(t.all, trace{})
	}
	return &t.all[number]
}

// decide sets the decision for each span, in two passes: the first finds the traces with errors and
// slow roots, the second decides. It reports whether all spans are forwarded unchanged.
func (s *Sample) decide(policy *Policy) (isUnchanged bool) {
	r := s.request
	s.traces.numbers.Reset(len(r.Spans))
	s.traces.all = s.traces.all[:0]
	for i := range r.Spans {
		span, extra := &r.Spans[i], &r.Extras[i]
		t := s.traces.get(extra.TraceHigh, extra.TraceLow)
		isSlow := policy.Slow > 0 && span.Parent == 0 && span.Duration >= uint64(policy.Slow)
		t.isWanted = t.isWanted || isSlow || policy.Errors && span.Status == spantable.StatusError
	}
	isUnchanged = true
	for i := range r.Spans {
		extra := &r.Extras[i]
		t := s.traces.get(extra.TraceHigh, extra.TraceLow)
		if !t.isWanted && s.threshold > 0 {
			s.decisions[i] = decideSpan(s.states.Read(r.Bytes(extra.State)), extra.TraceLow, s.threshold)
		}
		isUnchanged = isUnchanged && s.decisions[i] == forwarded
		t.isKept = t.isKept || s.decisions[i] != dropped
	}
	return isUnchanged
}

// decideSpan returns the decision for a span of a trace without errors. low is the lower half of
// the trace ID.
func decideSpan(state *tracestate.State, low, threshold uint64) decision {
	randomness := low & (tracestate.Never - 1)
	if state.HasRandomness {
		randomness = state.Randomness
	}
	switch {
	case state.HasAtLeast(threshold):
		return forwarded
	case randomness >= threshold:
		return raised
	}
	return dropped
}

// countKept counts the forwarded and the dropped spans and traces. A trace with at least one forwarded
// span counts as kept.
func (s *Sample) countKept() (kept, sampledOut Tally) {
	for _, d := range s.decisions {
		if d == dropped {
			sampledOut.Spans++
		}
	}
	for i := range s.traces.all {
		if s.traces.all[i].isKept {
			kept.Traces++
		}
	}
	kept.Spans = len(s.decisions) - sampledOut.Spans
	sampledOut.Traces = len(s.traces.all) - kept.Traces
	return kept, sampledOut
}

// Policy determines which traces are forwarded.
type Policy struct {
	Share  float64       // fraction of all traces, from 0 to 1
	Errors bool          // also traces that have a span with an error in the request
	Slow   time.Duration // also traces whose root takes at least this long; 0 disables this
}

// ParsePolicy parses a share of traces, and optional additional conditions, as in
// 0.05,errors,slow:500ms.
func ParsePolicy(text string) (k Policy, err error) {
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

// Tally is a number of traces and of their spans.
type Tally struct{ Traces, Spans int }

// Selection describes the part of a body that is forwarded.
type Selection struct {
	IsUnchanged         bool  // the body is forwarded unchanged
	Size                int   // bytes
	Sampled, SampledOut Tally // only counted with a Policy
}

// SelectionBytes returns the maximum length of the forwarded part of a body, if each span gets a
// tracestate.
func SelectionBytes(body int) int { return body + spantable.MaxSpans(body)*raisedBytes }

// raisedBytes is the maximum number of bytes by which a span becomes longer: tag and length of the
// tracestate field, the tracestate, and longer lengths of the enclosing messages.
const raisedBytes = 2 + tracestate.GrowthBytes + 6

// Select decides which part of a request is forwarded: all of it if policy is nil, or if the
// request could not be parsed. If marks is true, it adds to each resource with spans the attribute
// that tells the receiver that the spans have been counted, except if the client had counted them
// itself.
func (s *Sample) Select(r *otlp.Request, policy *Policy, marks bool) (selection Selection) {
	s.request, s.threshold, s.decisions = r, 0, s.decisions[:0]
	selection.IsUnchanged = true
	selection.Size = len(r.Body)
	if r.Err() != nil {
		return selection
	}
	for range r.Spans {
		s.decisions = append(s.decisions, forwarded)
	}
	if policy != nil {
		s.threshold = tracestate.ThresholdOf(policy.Share)
		selection.IsUnchanged = s.decide(policy)
		selection.Sampled, selection.SampledOut = s.countKept()
	}
	s.resources = s.resources[:0]
	for i := range r.Resources {
		resource, result := &r.Resources[i], resourceResult{}
		if marks && !resource.IsCounted && r.HasSpans(resource) {
			result.markedSize, result.isMarked = markedSize(r.Bytes(resource.Message))
		}
		s.resources = append(s.resources, result)
		selection.IsUnchanged = selection.IsUnchanged && !result.isMarked
	}
	if !selection.IsUnchanged {
		selection.Size = s.measure()
	}
	return selection
}
