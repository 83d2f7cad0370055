package otlp

import (
	"fmt"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/oteltraces"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// Features is what the agent wants counted.
type Features struct {
	Stats           bool
	PeerTags        []string
	SpanKinds       []string
	IgnoreResources []string
	FiltersTags     bool // it leaves out traces by their roots' tags, which only it can
}

// agentReader is the reading of the agent's own OTLP ingest: a Translator writes what the
// ingest would make of a message, and that is counted as traces of the agent's API are.
type agentReader struct {
	wanted     *atomic.Pointer[traces.Policy] // just now; nil: nothing that could be counted here
	policy     *traces.Policy                 // that the translator was made for
	translator *oteltraces.Translator
	counter    *traces.Counter
}

func newAgentReader(wanted *atomic.Pointer[traces.Policy]) *agentReader {
	return &agentReader{wanted: wanted, counter: traces.NewCounter()}
}

func (r *agentReader) read(message []byte, isCounted bool) (Result, error) {
	policy := r.wanted.Load()
	if policy == nil {
		return ResultNotWanted, nil
	}
	if policy != r.policy {
		var err error
		if r.translator, err = oteltraces.NewTranslator(policy.Tags()); err != nil {
			return ResultNotWanted, fmt.Errorf("BUG: a policy was taken that has no translator: %w", err)
		}
		r.policy = policy
	}
	t := r.translator
	if err := t.Translate(message, isCounted); err != nil {
		return ResultUnread, err //nolint:wrapcheck // it says what to do
	}
	if t.Spans() > 0 && t.Counted() == t.Spans() {
		return ResultByTracer, nil
	}
	if err := r.counter.Count(traces.FormatIngest, t.Written(), "", false, policy); err != nil {
		return ResultUnread, fmt.Errorf("count spans by the agent's rules: the request holds what only the agent can judge, such as a time before 1970: %w", err)
	}
	return ResultCounted, nil
}

func (r *agentReader) batches(yield func(span.Origin, []byte) bool) { r.counter.IngestBatches(yield) }

// goingOn are none: the agent's rules choose among the spans, and number them anew.
func (r *agentReader) goingOn(func(oteltraces.Going) bool) {}

func (r *agentReader) left() leaving { return r.translator }

func (r *agentReader) release() {
	r.counter = r.counter.Next()
	if r.translator != nil {
		r.translator.Release()
	}
}

// Learn takes over what the agent wants, in the reading that asks it.
func (s *Server) Learn() (changed <-chan struct{}) {
	if s.config.Reading != ReadingDatadog {
		return nil
	}
	f, changed := s.config.Features()
	policy, ok := traces.NewPolicy(f.PeerTags, f.SpanKinds, f.IgnoreResources, traces.Labels{})
	if ok && f.Stats && !f.FiltersTags {
		if _, err := oteltraces.NewTranslator(policy.Tags()); err == nil {
			s.agentPolicy.Store(policy)
			return changed
		}
	}
	if f.Stats {
		s.config.Log.Warn("the agent asks for tags that only it can read, or leaves out traces by their tags; OTLP is left to it to count")
	}
	s.agentPolicy.Store(nil)
	return changed
}
