package main

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/health"
)

// TestIdleWithoutConnections: a tracer of the agent's API may have none between two
// requests, so it must also have been silent for a while.
func TestIdleWithoutConnections(t *testing.T) {
	now := time.Now()
	of := func(live int, heard time.Duration) *health.APM {
		d := health.Door{Connections: health.Bounded{Live: live}, LastHeard: now.Add(-heard)}
		return &health.APM{Door: d}
	}
	for name, test := range map[string]struct {
		apm  *health.APM
		idle bool
	}{
		"none":               {nil, true},
		"never one":          {&health.APM{}, true},
		"a connection":       {of(1, time.Hour), false},
		"one that just left": {of(0, quiet-time.Millisecond), false},
		"one that left":      {of(0, quiet), true},
	} {
		status := &health.Status{At: now, Senders: health.Senders{APM: test.apm}}
		if test.apm != nil {
			status.Doors = map[string]*health.OnwardDoor{"apm": {Door: test.apm.Door}}
		}
		if err := isIdle(status); (err == nil) != test.idle {
			t.Errorf("%s: %v", name, err)
		}
	}
}
