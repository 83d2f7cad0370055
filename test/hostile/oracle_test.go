package main

import "testing"

// TestLedger_DetectsFaults checks that the ledger detects a missing span, a duplicate span, a
// replaced span, an acknowledged request that never arrived, and metrics with fewer spans than the
// statistics.
func TestLedger_DetectsFaults(t *testing.T) {
	whole := counts{Spans: 10, Errors: 1, Duration: 1000}
	for name, c := range map[string]struct {
		change      func(*account)
		lost, twice uint64
	}{
		"nothing":            {func(*account) {}, 0, 0},
		"one too few":        {func(a *account) { a.arrived = counts{9, 1, 900} }, 1, 0},
		"one too many":       {func(a *account) { a.arrived = counts{11, 1, 1100} }, 0, 1},
		"one for another":    {func(a *account) { a.arrived.Duration++ }, 1, 1},
		"by the agent":       {func(a *account) { a.arrived, a.byAgent = counts{}, whole }, 0, 0},
		"by both":            {func(a *account) { a.byAgent = whole }, 0, 10},
		"taken, never came":  {func(a *account) { a.taken[7] = true }, 1, 0},
		"taken and came":     {func(a *account) { a.taken[7], a.came[7] = true, true }, 0, 0},
		"metrics have fewer": {func(a *account) { a.hasMetrics, a.metrics = true, 8 }, 2, 0},
	} {
		l := newLedger()
		a := l.open("one")
		a.handed, a.arrived = whole, whole
		c.change(a)
		if v := l.judge(func(string, ...any) {}); v.Lost != c.lost || v.Twice != c.twice || v.Sent != 10 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
