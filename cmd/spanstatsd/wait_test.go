package main

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// TestWait_IdleWithoutConnections: a tracer that uses the agent's API may have no connection between
// requests, so the API must also be unused for a while.
func TestWait_IdleWithoutConnections(t *testing.T) {
	now := time.Now()
	of := func(live int, before time.Duration) *status.Receiver {
		return &status.Receiver{Connections: status.Bounded{Live: live}, LastResponse: now.Add(-before)}
	}
	for name, test := range map[string]struct {
		apm  *status.Receiver
		idle bool
	}{
		"none":               {nil, true},
		"never one":          {&status.Receiver{}, true},
		"a connection":       {of(1, time.Hour), false},
		"one that just left": {of(0, idleTime-time.Millisecond), false},
		"one that left":      {of(0, idleTime), true},
	} {
		answer := &status.Status{At: now}
		if test.apm != nil {
			answer.Receivers = map[string]*status.Receiver{"apm": test.apm}
		}
		if err := checkIdle(answer); (err == nil) != test.idle {
			t.Errorf("%s: %v", name, err)
		}
	}
}
