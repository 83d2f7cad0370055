package datadog

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/exemplars"
)

// TestAPriorityThatTheAgentDoesNotHeedMakesNoExemplar: a probabilistic sampler may throw away
// what the tracer's sampling keeps.
func TestAPriorityThatTheAgentDoesNotHeedMakesNoExemplar(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		h := newHarness(t)
		h.config.Exemplars = exemplars.New(8)
		h.config.Features = func() (Features, <-chan struct{}) {
			return Features{Stats: true, SpanKinds: []string{"server"}, DropsP0s: heeds}, nil
		}
		h.updatePolicy()
		j := h.job(t, time.Now().UnixNano())
		if result := j.count(); result != ResultCounted || (j.candidates != exemplars.Candidates{}) != heeds {
			t.Errorf("%s, candidates %v of an agent that heeds priorities: %t", result, j.candidates, heeds)
		}
	}
}

// TestCandidatesComeBack, with an answer and without one: there is room for one, and each body
// finds it.
func TestCandidatesComeBack(t *testing.T) {
	h, table := newHarness(t), exemplars.New(1)
	h.config.Exemplars = table
	h.config.Features = func() (Features, <-chan struct{}) {
		return Features{Stats: true, SpanKinds: []string{"server"}, DropsP0s: true}, nil
	}
	h.updatePolicy()
	for _, status := range []int{0, 500, 0, 200} {
		j := h.job(t, time.Now().UnixNano())
		if j.count(); (j.candidates == exemplars.Candidates{}) {
			t.Fatalf("no candidate where %d will be answered", status)
		}
		if status != 0 {
			j.judge(status)
		}
		if j.end(false); (j.candidates != exemplars.Candidates{}) {
			t.Errorf("%d leaves %v", status, j.candidates)
		}
	}
	if table.Seal(0).Of(0, false).Span == 0 {
		t.Error("what the agent took is no exemplar")
	}
}
