package otlp

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/oteltraces"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Reading is by whose rules spans count, and have their labels.
type Reading string

// The readings there are.
const (
	ReadingOTel    Reading = "otel"    // OpenTelemetry's semantic conventions
	ReadingDatadog Reading = "datadog" // the Datadog agent's own OTLP ingest
)

// ParseReading reads the name of one.
func ParseReading(text string) (Reading, error) {
	switch r := Reading(text); r {
	case ReadingOTel, ReadingDatadog:
		return r, nil
	}
	return "", fmt.Errorf("parse otlp-reading: %q is none; give otel or datadog", text)
}

// reader makes batches of messages by one reading. One goroutine at a time uses it.
type reader interface {
	// read walks a message. Its request may say that its spans are counted already. With
	// another result than ResultCounted there is nothing to be published.
	read(message []byte, isCounted bool) (Result, error)
	// batches are those of the last message, each with an origin that may be kept.
	batches(yield func(span.Origin, []byte) bool)
	// goingOn are the spans of the last message that go on, by what left was asked.
	goingOn(yield func(oteltraces.Going) bool)
	// left is what of the last message goes on.
	left() leaving
	// release lets go of the last message.
	release()
}

// leaving is what of a message goes on, and is written.
type leaving interface {
	Measure(k *oteltraces.Keeping, isMarked bool) oteltraces.Left
	AppendLeft(dst []byte) []byte
}

// newReader makes one of the reading that is asked for.
func (s *Server) newReader() reader {
	if s.config.Reading == ReadingDatadog {
		return newAgentReader(&s.agentPolicy)
	}
	return &conventions{oteltraces.NewCounter(), oteltraces.NewPolicy(oteltraces.Labels{})}
}

// conventions is the reading by OpenTelemetry's semantic conventions.
type conventions struct {
	counter *oteltraces.Counter
	policy  *oteltraces.Policy
}

func (r *conventions) read(message []byte, _ bool) (Result, error) {
	if err := r.counter.Count(message, r.policy); err != nil {
		return ResultUnread, err //nolint:wrapcheck // it says what to do
	}
	return ResultCounted, nil
}

func (r *conventions) batches(yield func(span.Origin, []byte) bool) { r.counter.Batches(yield) }
func (r *conventions) goingOn(yield func(oteltraces.Going) bool)    { r.counter.GoingOn(yield) }
func (r *conventions) left() leaving                                { return r.counter }
func (r *conventions) release()                                     { r.counter = r.counter.Next() }
