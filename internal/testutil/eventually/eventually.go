// Package eventually waits in tests for what another goroutine or process will do.
//
// A test that polls without a deadline hangs until its whole package is killed, and the
// report then names no cause. So a wait here ends: after a minute, which no correct program
// needs however loaded the machine is, the test fails and says what it waited for. The
// deadline is no measurement; nothing is asserted about how long anything took.
package eventually

import (
	"testing"
	"time"
)

const (
	deadline = time.Minute
	pause    = time.Millisecond
)

// True returns when the condition holds. It fails the test if that never happens. It must
// be called from the test's own goroutine, as t.Fatalf must.
func True(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !condition(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("waited for a minute in vain: %s", what)
		}
	}
}
