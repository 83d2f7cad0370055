package otlp

import (
	"fmt"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	agent "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Semantics selects the rules that decide which spans are counted, and under which labels.
type Semantics string

const (
	SemanticsOTel    Semantics = "otel"    // OpenTelemetry's semantic conventions
	SemanticsDatadog Semantics = "datadog" // rules of the Datadog agent's OTLP ingest
)

// countingBytes returns the maximum memory of a worker that counts a body of the given length.
func (s Semantics) countingBytes(body int) int {
	counter := otel.CounterBytes(body)
	if s == SemanticsDatadog {
		counter = translate.Bytes(body, agent.IngestedBytes) + agent.AnyCounter
	}
	counter += sampling.Bytes(body)
	return counter + spantable.MaxSpans(body)*admit.SpanBytes + bodies.DecompressorBytes + jsonBytes*body
}

// jsonBytes is the maximum memory per byte of JSON while it is converted: the output, and the longest string.
const jsonBytes = 3

// reader decodes a message and makes batches of its counted spans. It is not safe for concurrent use.
type reader interface {
	// read decodes a message and counts its spans. isCounted reports whether the request has headerComputedStats.
	// The message has batches only if the result is ResultCounted.
	read(message []byte, isCounted bool) (Result, error)
	// Batches iterates over the batches of the last message, each with an origin of limited length.
	Batches(yield func(span.Origin, *span.Batch) bool)
	// Counted iterates over the spans of the last message that are in a batch.
	Counted(yield func(otel.Counted) bool)
	// Request returns the last message, decoded.
	Request() *otlp.Request
	// Release releases the memory of the last message.
	Release()
}

// otelReader counts spans by OpenTelemetry's semantic conventions.
type otelReader struct {
	*otel.Counter
	policy *otel.Policy
}

func newOTelReader(policy *otel.Policy) *otelReader {
	return &otelReader{otel.NewCounter(), policy}
}

func (r *otelReader) read(message []byte, isCounted bool) (Result, error) {
	if isCounted {
		return ResultByTracer, nil
	}
	if err := r.Count(message, r.policy); err != nil {
		return ResultUnread, err //nolint:wrapcheck // it says what to do
	}
	return ResultCounted, nil
}

// agentReader counts spans like the Datadog agent's OTLP ingest: a Translator converts a message to Datadog traces, and
// the agent's rules are applied to these traces.
type agentReader struct {
	current    *atomic.Pointer[agent.Policy] // current policy; nil while only the agent can count the spans
	policy     *agent.Policy                 // policy of translator
	message    otlp.Request
	translator *translate.Translator
	traces     spantable.Table
	counter    *agent.Counter
}

func newAgentReader(current *atomic.Pointer[agent.Policy]) *agentReader {
	return &agentReader{current: current, counter: agent.NewCounter()}
}

func (r *agentReader) read(message []byte, isCounted bool) (Result, error) {
	policy := r.current.Load()
	if policy == nil {
		return ResultNotWanted, nil
	}
	if policy != r.policy {
		var err error
		if r.translator, err = translate.New(policy.Names()); err != nil {
			return ResultNotWanted, fmt.Errorf("BUG: a policy was taken that has no translator: %w", err)
		}
		r.policy = policy
	}
	t := r.translator
	spanAttributes, resourceAttributes := t.Names()
	if err := r.message.Decode(message, spanAttributes, resourceAttributes); err != nil {
		return ResultUnread, err //nolint:wrapcheck // it says what to do
	}
	if err := t.Translate(&r.message, isCounted, &r.traces); err != nil {
		return ResultUnread, err //nolint:wrapcheck // it says what to do
	}
	if spans := len(r.message.Spans); spans > 0 && t.Counted() == spans {
		return ResultByTracer, nil
	}
	if err := r.counter.CountIngested(&r.traces, policy); err != nil {
		return ResultUnread, fmt.Errorf("count spans by the agent's rules: "+
			"the request has values that only the agent can interpret, such as a time before 1970: %w", err)
	}
	return ResultCounted, nil
}

func (r *agentReader) Batches(yield func(span.Origin, *span.Batch) bool) {
	r.counter.IngestedBatches(yield)
}

// Counted yields nothing: the agent's rules renumber the spans, so that they can't be found in the message.
func (r *agentReader) Counted(func(otel.Counted) bool) {}

func (r *agentReader) Request() *otlp.Request { return &r.message }

func (r *agentReader) Release() {
	r.counter.Release()
	r.traces.Release()
	r.message.Release()
}

// worker is the memory for counting one call. A call has exclusive use of its worker.
type worker struct {
	reader       reader
	sample       sampling.Sample
	decompressor bodies.Decompressor
	compressor   compressor
}

// release releases the memory of the last call.
func (w *worker) release() {
	w.reader.Release()
	w.sample.Release()
}

// forwardedSpans iterates over the counted spans that are forwarded and have a trace id and a span id. They can become
// exemplars.
func (w *worker) forwardedSpans(yield func(receiver.ForwardedSpan) bool) {
	r := w.reader.Request()
	for s := range w.reader.Counted {
		extra, id := &r.Extras[s.Span], r.Spans[s.Span].ID
		hasIDs := id != 0 && extra.TraceHigh|extra.TraceLow != 0
		if !hasIDs || !w.sample.IsSelected(s.Span) {
			continue
		}
		if !yield(receiver.ForwardedSpan{
			Batch: s.Batch, Index: s.At, TraceHigh: extra.TraceHigh, TraceLow: extra.TraceLow, Span: id,
		}) {
			return
		}
	}
}
