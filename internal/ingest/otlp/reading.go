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

// Reading is whose rules decide which spans count, and under which labels.
type Reading string

const (
	ReadingOTel    Reading = "otel"    // OpenTelemetry's semantic conventions
	ReadingDatadog Reading = "datadog" // the Datadog agent's own OTLP ingest
)

// countingBytes returns the memory for counting and publishing a body of that length.
func (r Reading) countingBytes(body int) int {
	counter := otel.CounterBytes(body)
	if r == ReadingDatadog {
		counter = translate.Bytes(body, agent.IngestedBytes) + agent.AnyCounter
	}
	counter += sampling.Bytes(body)
	return counter + spantable.MaxSpans(body)*admit.SpanBytes + bodies.DecompressorBytes + jsonBytes*body
}

// jsonBytes is the memory for reading JSON per byte: its buffer, and its longest text.
const jsonBytes = 3

// reader makes batches of messages by one reading. One goroutine at a time uses it.
type reader interface {
	// read decodes a message and counts its spans. isCounted is whether the request's header says that they
	// are counted. Unless the result is ResultCounted there is nothing to publish.
	read(message []byte, isCounted bool) (Result, error)
	// Batches visits the batches of the last message, each with an origin of bounded length.
	Batches(yield func(span.Origin, *span.Batch) bool)
	// Counted visits the spans of the last message that have a place in a batch.
	Counted(yield func(otel.Counted) bool)
	// Request returns the last message, decoded.
	Request() *otlp.Request
	// Release releases the last message.
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

// agentReader counts spans as the Datadog agent's own OTLP ingest does: a Translator makes Datadog traces of a message,
// and the agent's rules count those.
type agentReader struct {
	wanted     *atomic.Pointer[agent.Policy] // the current policy; nil while only the agent can count
	policy     *agent.Policy                 // policy of the translator
	message    otlp.Request
	translator *translate.Translator
	traces     spantable.Table
	counter    *agent.Counter
}

func newAgentReader(wanted *atomic.Pointer[agent.Policy]) *agentReader {
	return &agentReader{wanted: wanted, counter: agent.NewCounter()}
}

func (r *agentReader) read(message []byte, isCounted bool) (Result, error) {
	policy := r.wanted.Load()
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
	ofSpans, ofResources := t.Names()
	if err := r.message.Decode(message, ofSpans, ofResources); err != nil {
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
			"the request holds what only the agent can judge, such as a time before 1970: %w", err)
	}
	return ResultCounted, nil
}

func (r *agentReader) Batches(yield func(span.Origin, *span.Batch) bool) {
	r.counter.IngestedBatches(yield)
}

// Counted visits none: the agent's rules choose among the spans and renumber them.
func (r *agentReader) Counted(func(otel.Counted) bool) {}

func (r *agentReader) Request() *otlp.Request { return &r.message }

func (r *agentReader) Release() {
	r.counter.Release()
	r.traces.Release()
	r.message.Release()
}

// worker holds the memory for counting one body.
type worker struct {
	reader       reader
	sample       sampling.Sample
	decompressor bodies.Decompressor
	compressor   compressor
}

// release releases the last body.
func (w *worker) release() {
	w.reader.Release()
	w.sample.Release()
}

// forwardedSpans visits the spans that are forwarded and have ids: they may become exemplars.
func (w *worker) forwardedSpans(yield func(receiver.ForwardedSpan) bool) {
	r := w.reader.Request()
	for s := range w.reader.Counted {
		place, id := &r.Extras[s.Span], r.Spans[s.Span].ID
		if !w.sample.IsSelected(s.Span) || id == 0 || place.TraceHigh|place.TraceLow == 0 {
			continue
		}
		if !yield(receiver.ForwardedSpan{
			Batch: s.Batch, Index: s.At, TraceHigh: place.TraceHigh, TraceLow: place.TraceLow, Span: id,
		}) {
			return
		}
	}
}
