package wire

import (
	"fmt"
	"testing"
)

// Outcomes are read as they were written. An unknown outcome, or half a pair, never counts as delivered.
func TestOutcomes_RoundTrip(t *testing.T) {
	list := AppendOutcome(AppendOutcome(AppendOutcome(nil, 50, Settled), 80, Ambiguous), 480, Resend)
	for _, c := range []struct {
		list []uint64
		want string
	}{
		{nil, ""},
		{list, "50:0 80:1 480:2 "},
		{append(list, 481), "50:0 80:1 480:2 "},
		{[]uint64{7, 3, 9, 1 << 63}, "7:2 9:2 "},
	} {
		got := ""
		for upTo, what := range Outcomes(c.list) {
			got += fmt.Sprintf("%d:%d ", upTo, what)
		}
		if got != c.want {
			t.Errorf("%d reads as %q, want %q", c.list, got, c.want)
		}
	}
	for range Outcomes(list) {
		break // the iteration can end early
	}
}
