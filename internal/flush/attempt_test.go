package flush

import (
	"testing"
	"time"
)

// TestClockOf reads the difference of a Date, and nothing where there is none.
func TestClockOf(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if c := ClockOf("Fri, 02 Jan 2026 03:05:05 GMT", now); c.Ahead != time.Minute || !c.At.Equal(now) {
		t.Errorf("%+v", c)
	}
	for _, none := range []string{"", "yesterday"} {
		if c := ClockOf(none, now); c != (Clock{}) {
			t.Errorf("%q: %+v", none, c)
		}
	}
}
