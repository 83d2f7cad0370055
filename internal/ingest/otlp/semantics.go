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
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Semantics selects the rules that decide which spans are counted, and under which labels.
type Semantics string

const (
	SemanticsOTel    Semantics = "otel"    // OpenTelemetry's semantic conventions
	SemanticsDatadog Semantics = "datadog" // rules of the Datadog agent's OTLP ingest
)

// countingBytes returns the maximum memory that is needed to count a request with a body of bodyBytes bytes.
// hasMeasures is true if values of attributes are counted, too.
func (s Semantics) countingBytes(bodyBytes int, hasMeasures bool) int {
	var counterBytes int
	switch s {
	case SemanticsDatadog:
		translationBytes := translate.Bytes(bodyBytes, agent.IngestedBytes)
		counterBytes = translationBytes + agent.FixedCounterBytes
	default:
		counterBytes = otel.CounterBytes(bodyBytes)
	}
	batchBytes := spantable.MaxSpans(bodyBytes) * admit.SpanBytes
	if hasMeasures { // only with SemanticsOTel
		counterBytes += otel.ValueBytes(bodyBytes)
		batchBytes *= 2 // a request has as many values as spans at most
	}
	conversionBytes := bodies.DecompressorBytes + jsonBytes*bodyBytes
	return counterBytes + sampling.Bytes(bodyBytes) + batchBytes + conversionBytes
}

// jsonBytes is the maximum memory per byte of JSON while it is converted: the output, and the longest string.
const jsonBytes = 3

// reader decodes a message and makes batches of its counted spans. It is not safe for concurrent use.
type reader interface {
	// read decodes a message and counts its spans. isRequestCounted reports whether the request has headerComputedStats.
	// The message has batches only if the result is ResultCounted.
	read(message []byte, isRequestCounted bool) (Result, error)
	// Batches iterates over the batches of the last message, each with an origin of limited length.
	Batches(yield func(span.Origin, *span.Batch) bool)
	// Counted iterates over the spans of the last message that are in a batch.
	Counted(yield func(otel.Counted) bool)
	// Request returns the last message, decoded.
	Request() *otlp.Request
	// RefusedValues returns the number of values in the last message that are not counted, by reason, and the name of an
	// attribute that has one of them.
	RefusedValues() (refused [measure.Refusals]uint64, attribute string)
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

// read decodes a trace message and counts its spans according to the semantic conventions of OpenTelemetry. If
// isRequestCounted is true, the sender has counted the spans itself, and read does not decode the message.
func (r *otelReader) read(message []byte, isRequestCounted bool) (Result, error) {
	if isRequestCounted {
		return ResultComputedByClient, nil
	}
	if err := r.Count(message, r.policy); err != nil {
		return ResultUnparsable, err
	}
	spans := len(r.Request().Spans)
	hasSenderCounted := spans > 0 && r.Skipped() == spans // Count skips spans that the sender has marked as counted
	if hasSenderCounted {
		return ResultComputedByClient, nil
	}
	return ResultCounted, nil
}

// agentReader counts spans like the Datadog agent's OTLP ingest: a Translator converts a message to Datadog traces, and
// the agent's rules are applied to these traces.
type agentReader struct {
	currentPolicy *atomic.Pointer[agent.Policy] // nil while only the agent can count the spans
	policy        *agent.Policy                 // policy of translator
	message       otlp.Request
	translator    *translate.Translator
	traces        spantable.Table
	counter       *agent.Counter
}

func newAgentReader(currentPolicy *atomic.Pointer[agent.Policy]) *agentReader {
	return &agentReader{currentPolicy: currentPolicy, counter: agent.NewCounter()}
}

// read decodes a trace message and counts its spans by the rules of the Datadog agent. isRequestCounted is true if the
// header of the request says that the sender has counted the spans. An attribute of a resource can overrule the header
// for the resource's spans. If the daemon can't apply the agent's rules, read counts nothing and returns
// ResultNotWanted.
func (r *agentReader) read(message []byte, isRequestCounted bool) (Result, error) {
	policy := r.currentPolicy.Load()
	canApply := policy != nil
	if !canApply {
		return ResultNotWanted, nil
	}
	if err := r.setPolicy(policy); err != nil {
		return ResultNotWanted, err
	}
	if err := r.decode(message, isRequestCounted); err != nil {
		return ResultUnparsable, err
	}
	spans := len(r.message.Spans)
	spansCountedBySender := r.translator.Counted() // according to the header or to the attribute of their resource
	isAllCounted := spans > 0 && spansCountedBySender == spans
	if isAllCounted {
		return ResultComputedByClient, nil
	}
	if err := r.counter.CountIngested(&r.traces, policy); err != nil {
		return ResultUnparsable, fmt.Errorf("count spans by the agent's rules: "+
			"the request has values that only the agent can interpret, such as a time before 1970: %w", err)
	}
	return ResultCounted, nil
}

// setPolicy replaces the policy, and the translator that depends on it, if the policy has changed.
func (r *agentReader) setPolicy(policy *agent.Policy) error {
	if policy == r.policy {
		return nil
	}
	translator, err := translate.New(policy.Names())
	if err != nil {
		return fmt.Errorf("BUG: a policy was taken that has no translator: %w", err)
	}
	r.translator = translator
	r.policy = policy
	return nil
}

// decode decodes a message into r.message, and translates that to Datadog traces in r.traces. The traces don't contain
// spans that the sender has already counted.
func (r *agentReader) decode(message []byte, isRequestCounted bool) error {
	spanAttributes, resourceAttributes := r.translator.Names()
	if err := r.message.Decode(message, spanAttributes, resourceAttributes); err != nil {
		return err
	}
	return r.translator.Translate(&r.message, isRequestCounted, &r.traces)
}

func (r *agentReader) Batches(yield func(span.Origin, *span.Batch) bool) {
	r.counter.IngestedBatches(yield)
}

// Counted yields nothing: the agent's rules renumber the spans, so that they can't be found in the message.
func (r *agentReader) Counted(func(otel.Counted) bool) {}

// RefusedValues returns nothing: measures need OpenTelemetry's semantics.
func (r *agentReader) RefusedValues() (refused [measure.Refusals]uint64, attribute string) {
	return refused, ""
}

func (r *agentReader) Request() *otlp.Request { return &r.message }

func (r *agentReader) Release() {
	r.counter.Release()
	r.traces.Release()
	r.message.Release()
}

// workspace is the memory for counting one request. A request has exclusive use of its workspace.
type workspace struct {
	reader       reader
	sample       sampling.Sample
	decompressor bodies.Decompressor
	compressor   compressor
}

// release removes the content of the last request. The memory is reused for the next one.
func (ws *workspace) release() {
	ws.reader.Release()
	ws.sample.Release()
}

// forwardedSpans iterates over the spans of the request that are counted and forwarded, and have both a trace ID and
// a span ID. Metrics can refer to such a span as an exemplar.
func (ws *workspace) forwardedSpans(yield func(receiver.ForwardedSpan) bool) {
	request := ws.reader.Request()
	for counted := range ws.reader.Counted {
		spanID := request.Spans[counted.SpanIndex].ID
		trace := &request.Extras[counted.SpanIndex]
		hasTraceID := trace.TraceHigh != 0 || trace.TraceLow != 0
		isForwarded := ws.sample.IsSelected(counted.SpanIndex)
		canBeExemplar := isForwarded && spanID != 0 && hasTraceID
		if !canBeExemplar {
			continue
		}
		forwarded := receiver.ForwardedSpan{
			Batch: counted.Batch, Index: counted.IndexInBatch,
			TraceHigh: trace.TraceHigh, TraceLow: trace.TraceLow, Span: spanID,
		}
		if !yield(forwarded) {
			return
		}
	}
}
