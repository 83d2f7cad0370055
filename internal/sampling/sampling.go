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
	request    *otlp.Request
	threshold  uint64 // threshold of the configured share
	states     tracestate.Memo
	traces     traces
	decisions  []decision       // one per span
	scopeSizes []int            // new length of each scope's message; droppedSize if it is dropped
	resources  []resourceResult // one per resource
	newState   []byte           // buffer for a tracestate with the configured threshold
}

// decision is the decision about a span.
type decision uint8

const (
	forwardUnchanged     decision = iota
	forwardWithThreshold          // with the configured threshold
	drop
)

const decisionBytes = int(unsafe.Sizeof(forwardUnchanged))

// traces assigns a state to each trace of one request.
type traces struct {
	numbers spantable.TraceNumbers
	all     []trace // by trace number
}

// trace is the state of one trace.
type trace struct {
	isExempt    bool // whether it has an error or is slow, so that all of its spans are forwarded
	isForwarded bool // whether at least one of its spans is forwarded
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

// Bytes returns the maximum memory in bytes of a Sample for requests of the given length. It assumes that
// each span is in a resource, a scope and a trace of its own.
func Bytes(requestBytes int) int {
	const resourceBytes = int(unsafe.Sizeof(resourceResult{}))
	const scopeBytes = int(unsafe.Sizeof(0)) // element of Sample.scopeSizes
	const bytesPerSpan = spantable.TraceNumberBytes + traceBytes + decisionBytes + resourceBytes + scopeBytes
	maxSpans := spantable.MaxSpans(requestBytes)
	return int(spantable.GrowthFactor * float64(maxSpans*bytesPerSpan)) // including spare capacity of slices
}

// IsSelected reports whether a span is forwarded. If Select made no decisions, all spans are.
func (s *Sample) IsSelected(span int) bool {
	return len(s.decisions) == 0 || s.decisions[span] != drop
}

// Release removes the references to the request.
func (s *Sample) Release() {
	s.request, s.decisions = nil, s.decisions[:0]
	s.states.Forget()
}

// reset removes all traces, and makes space for those of the given number of spans.
func (t *traces) reset(spans int) {
	t.numbers.Reset(spans)
	t.all = t.all[:0]
}

// traceOf returns the trace to which a span belongs. It adds the trace if the span is the first one
// with this trace ID. The pointer is valid until the next call, which can move the traces.
func (t *traces) traceOf(extra *otlp.SpanExtra) *trace {
	number := t.numbers.NumberOf(extra.TraceHigh, extra.TraceLow)
	isNew := number == len(t.all)
	if isNew {
		t.all = append(t.all, trace{})
	}
	return &t.all[number]
}

// markExemptTraces sets isExempt for the traces that the policy forwards completely, without sampling:
// those with an error if policy.Errors is set, and those with a root span of at least policy.Slow if
// that is not 0.
func (s *Sample) markExemptTraces(policy *Policy) {
	s.traces.reset(len(s.request.Spans))
	for i := range s.request.Spans {
		span := &s.request.Spans[i]
		isSlow := policy.Slow > 0 && span.Duration >= uint64(policy.Slow)
		isSlowRoot := isSlow && span.Parent == 0
		isWantedError := policy.Errors && span.Status == spantable.StatusError
		t := s.traces.traceOf(&s.request.Extras[i])
		if isSlowRoot || isWantedError {
			t.isExempt = true
		}
	}
}

// decideSpans decides which spans of the request are forwarded, and stores the result in s.decisions.
// It forwards all spans of traces that are exempt from sampling, and samples other spans. It returns
// true if it forwards every span unchanged.
func (s *Sample) decideSpans() (isUnchanged bool) {
	isUnchanged = true
	samplesAll := s.threshold == 0
	for i := range s.request.Extras {
		span := &s.request.Extras[i]
		t := s.traces.traceOf(span)
		decision := forwardUnchanged
		if !samplesAll && !t.isExempt {
			traceState := s.states.Read(s.request.Bytes(span.State))
			decision = decideSpan(traceState, span.TraceLow, s.threshold)
		}
		s.decisions[i] = decision
		if decision != forwardUnchanged {
			isUnchanged = false
		}
		if decision != drop {
			t.isForwarded = true
		}
	}
	return isUnchanged
}

// decideSpan decides whether a span is forwarded, given the threshold of the configured share. If the span was already
// sampled with the same or a higher threshold, it is forwarded unchanged. Otherwise, it is forwarded if its randomness is
// at least the threshold. The randomness is in the tracestate or, if it is not, in the lower half of the trace ID.
func decideSpan(state *tracestate.State, traceIDLow, threshold uint64) decision {
	const lowest56Bits = 1<<56 - 1
	randomness := traceIDLow & lowest56Bits
	if state.HasRandomness {
		randomness = state.Randomness
	}
	switch {
	case state.HasThresholdAtLeast(threshold):
		return forwardUnchanged
	case randomness >= threshold:
		return forwardWithThreshold
	}
	return drop
}

// countDecisions returns the numbers of sampled spans and traces of the request, which are forwarded, and
// of sampled out ones, which are dropped. A trace counts as sampled if at least one of its spans is.
func (s *Sample) countDecisions() (sampled, sampledOut Tally) {
	for _, decision := range s.decisions {
		if decision == drop {
			sampledOut.Spans++
		} else {
			sampled.Spans++
		}
	}
	for _, t := range s.traces.all {
		if t.isForwarded {
			sampled.Traces++
		} else {
			sampledOut.Traces++
		}
	}
	return sampled, sampledOut
}

// Policy determines which traces are forwarded.
type Policy struct {
	Share  float64       // fraction of all traces, from 0 to 1
	Errors bool          // also traces that have a span with an error in the request
	Slow   time.Duration // also traces whose root takes at least this long; 0 disables this
}

// ParsePolicy parses a policy such as "0.05,errors,slow:500ms": the fraction of traces to forward, and optional
// conditions for traces that are always forwarded. In the example, these are traces with an error and traces with a root
// span of 500ms or more.
func ParsePolicy(text string) (Policy, error) {
	share, conditions, hasConditions := strings.Cut(text, ",")
	fraction, err := strconv.ParseFloat(share, 64)
	isInRange := 0 <= fraction && fraction <= 1 // false for NaN
	if err != nil || !isInRange {
		return Policy{}, fmt.Errorf("parse otlp-keep: %q does not begin with a share of traces, from 0 to 1; use "+
			"0.05, or 0.05,errors,slow:500ms", text)
	}
	policy := Policy{Share: fraction}
	if !hasConditions {
		return policy, nil
	}
	for condition := range strings.SplitSeq(conditions, ",") {
		if !policy.addCondition(condition) {
			return Policy{}, fmt.Errorf("parse otlp-keep: %q is neither errors nor slow:500ms", condition)
		}
	}
	return policy, nil
}

// addCondition parses a condition and adds it to p: "errors", or a minimum duration like "slow:500ms". Traces that
// satisfy a condition are always forwarded. addCondition returns false if the condition is invalid.
func (p *Policy) addCondition(condition string) bool {
	if condition == "errors" {
		p.Errors = true
		return true
	}
	duration, isSlow := strings.CutPrefix(condition, "slow:")
	if !isSlow {
		return false
	}
	slow, err := time.ParseDuration(duration)
	if err != nil || slow <= 0 {
		return false
	}
	p.Slow = slow
	return true
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

// Select decides which spans of a request are forwarded. If policy is nil, all spans are. If the
// request could not be parsed, it is forwarded unchanged. If addMarks is true, the attribute
// otlp.StatsComputed is added to forwarded resources, so that the receiver does not count their spans
// again.
func (s *Sample) Select(r *otlp.Request, policy *Policy, addMarks bool) (selection Selection) {
	s.request = r
	s.threshold = 0
	s.decisions = s.decisions[:0]
	selection.IsUnchanged = true
	selection.Size = len(r.Body)
	if r.Err() != nil {
		return selection
	}
	for range r.Spans {
		s.decisions = append(s.decisions, forwardUnchanged)
	}
	if policy != nil {
		s.threshold = tracestate.ThresholdOf(policy.Share)
		s.markExemptTraces(policy)
		selection.IsUnchanged = s.decideSpans()
		selection.Sampled, selection.SampledOut = s.countDecisions()
	}
	hasMarks := s.selectMarks(addMarks)
	if hasMarks {
		selection.IsUnchanged = false
	}
	if !selection.IsUnchanged {
		selection.Size = s.computeSizes()
	}
	return selection
}

// selectMarks decides which resources get the attribute otlp.StatsComputed, which tells the receiver that their spans
// have been counted. If addMarks is true, each resource gets it whose spans the daemon has counted. hasMarks is true if
// at least one resource is to be changed.
func (s *Sample) selectMarks(addMarks bool) (hasMarks bool) {
	s.resources = s.resources[:0]
	for i := range s.request.Resources {
		resource := &s.request.Resources[i]
		var result resourceResult
		isCountedByClient := resource.IsCounted
		isCountedHere := s.request.HasSpans(resource) && !isCountedByClient
		if addMarks && isCountedHere {
			result.markedSize, result.isMarked = markedSize(s.request.Bytes(resource.Message))
		}
		s.resources = append(s.resources, result)
		if result.isMarked {
			hasMarks = true
		}
	}
	return hasMarks
}
