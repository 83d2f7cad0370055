package otlp

import (
	"fmt"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	agent "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// agentReader is the reading of the agent's own OTLP ingest: a Translator makes what the ingest
// would make of a message, and that is counted as traces of the agent's API are.
type agentReader struct {
	wanted     *atomic.Pointer[agent.Policy] // just now; nil: nothing that could be counted here
	policy     *agent.Policy                 // that the translator was made for
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

func (r *agentReader) batches(yield func(span.Origin, *span.Batch) bool) {
	r.counter.IngestedBatches(yield)
}

// counted are none: the agent's rules choose among the spans, and number them anew.
func (r *agentReader) counted(func(otel.Counted) bool) {}

func (r *agentReader) request() *otlp.Request { return &r.message }

func (r *agentReader) release() {
	r.counter.Release()
	r.traces.Release()
	r.message.Release()
}

// Learn takes over what the agent wants, in the reading that asks it.
func (s *Server) Learn() (changed <-chan struct{}) {
	if s.config.Reading != ReadingDatadog {
		return nil
	}
	f, changed := s.config.Features()
	policy, ok := agent.NewPolicy(f.PeerTags, f.SpanKinds, f.IgnoreResources, agent.Labels{})
	if ok && f.Stats && !f.FiltersTags {
		if _, err := translate.New(policy.Names()); err == nil {
			s.agentPolicy.Store(policy)
			return changed
		}
	}
	if f.Stats {
		s.config.Log.Warn("the agent asks for tags that only it can read, or leaves out traces by their " +
			"tags; OTLP is left to it to count")
	}
	s.agentPolicy.Store(nil)
	return changed
}
