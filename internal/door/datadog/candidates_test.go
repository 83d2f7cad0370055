package datadog

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
)

// TestAPriorityThatTheAgentDoesNotHeedMakesNoExemplar: a probabilistic sampler may throw away
// what the tracer's sampling keeps.
func TestAPriorityThatTheAgentDoesNotHeedMakesNoExemplar(t *testing.T) {
	for heeds, want := range map[bool]uint64{true: 1, false: 0} {
		table := exemplars.New(8)
		h := newHarness(t, func(c *Config) {
			c.Exemplars = table
			c.Features = func() (door.Features, <-chan struct{}) {
				return door.Features{Stats: true, SpanKinds: []string{"server"}, DropsP0s: heeds}, nil
			}
		})
		h.Learn()
		j := h.job(t, time.Now().UnixNano())
		result := j.count()
		if j.Abandon(); result != ResultCounted || table.Counts().Taken != want {
			t.Errorf("%s, of an agent that heeds priorities %t: %+v", result, heeds, table.Counts())
		}
	}
}
