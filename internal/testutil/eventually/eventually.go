// Package eventually waits in tests for a condition that another goroutine or process makes true.
//
// A test that polls without a deadline hangs until the whole test binary times out, with a report that does not name
// the cause. True fails the test after one minute instead, and states the condition. The deadline is longer than any
// correct program needs, however loaded the machine is; it is not an assertion about time.
package eventually

import (
	"testing"
	"time"
)

const (
	deadline = time.Minute
	pause    = time.Millisecond
)

// True waits until the condition is true, and fails the test if this takes longer than a minute. The failure contains
// description. True must be called from the test's own goroutine, like t.Fatalf.
func True(t testing.TB, description string, condition func() bool) {
	t.Helper()
	end := time.Now().Add(deadline)
	for !condition() {
		if time.Now().After(end) {
			t.Fatalf("waited for a minute in vain: %s", description)
		}
		time.Sleep(pause)
	}
}
