package otlp

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
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
	// read decodes a message and counts its spans. Its request may say that they are counted
	// already. With another result than ResultCounted there is nothing to be published.
	read(message []byte, isCounted bool) (Result, error)
	// batches are those of the last message, each with an origin that may be kept.
	batches(yield func(span.Origin, *span.Batch) bool)
	// counted are the spans of the last message with their places in the batches, where
	// each span has one.
	counted(yield func(otel.Counted) bool)
	// request is the last message, decoded.
	request() *otlp.Request
	// release lets go of the last message.
	release()
}

// newReader makes one of the reading that is asked for.
func (s *Server) newReader() reader {
	if s.config.Reading == ReadingDatadog {
		return newAgentReader(&s.agentPolicy)
	}
	return &conventions{otel.NewCounter(), otel.NewPolicy(otel.Labels{})}
}

// conventions is the reading by OpenTelemetry's semantic conventions.
type conventions struct {
	counter *otel.Counter
	policy  *otel.Policy
}

func (r *conventions) read(message []byte, _ bool) (Result, error) {
	if err := r.counter.Count(message, r.policy); err != nil {
		return ResultUnread, err //nolint:wrapcheck // it says what to do
	}
	return ResultCounted, nil
}

func (r *conventions) batches(yield func(span.Origin, *span.Batch) bool) { r.counter.Batches(yield) }

func (r *conventions) counted(yield func(otel.Counted) bool) { r.counter.Counted(yield) }

func (r *conventions) request() *otlp.Request { return r.counter.Request() }
func (r *conventions) release()               { r.counter.Release() }
