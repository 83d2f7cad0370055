package otlp

import (
	"fmt"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	agent "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Reading is by whose rules spans count, and have their labels.
type Reading string

// The readings there are.
const (
	ReadingOTel    Reading = "otel"    // OpenTelemetry's semantic conventions
	ReadingDatadog Reading = "datadog" // the Datadog agent's own OTLP ingest
)

// countingBytes is what counting a body of that length takes, and publishing it.
func (r Reading) countingBytes(body int) int {
	counter := otel.CounterBytes(body)
	if r == ReadingDatadog {
		counter = translate.Bytes(body, agent.IngestedBytes) + agent.AnyCounter
	}
	counter += sampling.Bytes(body)
	return counter + spantable.MaxSpans(body)*admit.SpanBytes + bodies.InflaterBytes + jsonBytes*body
}

// jsonBytes is what reading JSON takes for each of its bytes: its buffer, and its longest text.
const jsonBytes = 3

// reader makes batches of messages by one reading. One goroutine at a time uses it.
type reader interface {
	// read decodes a message and counts its spans. Its request may say that they are counted
	// already. With another result than ResultCounted there is nothing to be published.
	read(message []byte, isCounted bool) (Result, error)
	// Batches are those of the last message, each with an origin that may be kept.
	Batches(yield func(span.Origin, *span.Batch) bool)
	// Counted are the spans of the last message with their places in the batches, where
	// each span has one.
	Counted(yield func(otel.Counted) bool)
	// Request is the last message, decoded.
	Request() *otlp.Request
	// Release lets go of the last message.
	Release()
}

// conventions is the reading by OpenTelemetry's semantic conventions.
type conventions struct {
	*otel.Counter
	policy *otel.Policy
}

func newConventions(policy *otel.Policy) *conventions {
	return &conventions{otel.NewCounter(), policy}
}

func (r *conventions) read(message []byte, isCounted bool) (Result, error) {
	if isCounted {
		return ResultByTracer, nil
	}
	if err := r.Count(message, r.policy); err != nil {
		return ResultUnread, err //nolint:wrapcheck // it says what to do
	}
	return ResultCounted, nil
}

// ingest is the reading of the agent's own OTLP ingest: a Translator makes what the ingest
// would make of a message, and that is counted as traces of the agent's API are.
type ingest struct {
	wanted     *atomic.Pointer[agent.Policy] // just now; nil: nothing that could be counted here
	policy     *agent.Policy                 // that the translator was made for
	message    otlp.Request
	translator *translate.Translator
	traces     spantable.Table
	counter    *agent.Counter
}

func newIngest(wanted *atomic.Pointer[agent.Policy]) *ingest {
	return &ingest{wanted: wanted, counter: agent.NewCounter()}
}

func (r *ingest) read(message []byte, isCounted bool) (Result, error) {
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

func (r *ingest) Batches(yield func(span.Origin, *span.Batch) bool) { r.counter.IngestedBatches(yield) }

// Counted are none: the agent's rules choose among the spans, and number them anew.
func (r *ingest) Counted(func(otel.Counted) bool) {}

func (r *ingest) Request() *otlp.Request { return &r.message }

func (r *ingest) Release() {
	r.counter.Release()
	r.traces.Release()
	r.message.Release()
}

// worker is what the counting of one body needs.
type worker struct {
	reader   reader
	sample   sampling.Sample
	inflater bodies.Inflater
	packer   packer
}

// release lets go of the last body.
func (w *worker) release() {
	w.reader.Release()
	w.sample.Release()
}

// goingOn visits the spans that go on and can be found by their ids: they may become exemplars.
func (w *worker) goingOn(yield func(door.Going) bool) {
	r := w.reader.Request()
	for s := range w.reader.Counted {
		place, id := &r.Places[s.Span], r.Spans[s.Span].ID
		if !w.sample.GoesOn(s.Span) || id == 0 || place.TraceHigh|place.TraceLow == 0 {
			continue
		}
		going := door.Going{
			Batch: s.Batch, At: s.At, TraceHigh: place.TraceHigh, TraceLow: place.TraceLow, Span: id,
		}
		if !yield(going) {
			return
		}
	}
}
