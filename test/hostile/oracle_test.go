package main

import "testing"

// TestLedger_DetectsFaults checks that the ledger detects a missing span, a duplicate span, a
// replaced span, an acknowledged request that never arrived, and metrics with fewer spans than the
// statistics.
func TestLedger_DetectsFaults(t *testing.T) {
	all := counts{Spans: 10, Errors: 1, Duration: 1000}
	for name, c := range map[string]struct {
		change      func(*account)
		lost, twice uint64
	}{
		"nothing":                     {func(*account) {}, 0, 0},
		"missing span":                {func(a *account) { a.arrived = counts{9, 1, 900} }, 1, 0},
		"duplicate span":              {func(a *account) { a.arrived = counts{11, 1, 1100} }, 0, 1},
		"replaced span":               {func(a *account) { a.arrived.Duration++ }, 1, 1},
		"counted by agent":            {func(a *account) { a.arrived, a.byAgent = counts{}, all }, 0, 0},
		"counted by both":             {func(a *account) { a.byAgent = all }, 0, 10},
		"acknowledged, not delivered": {func(a *account) { a.accepted[7] = true }, 1, 0},
		"acknowledged and delivered":  {func(a *account) { a.accepted[7], a.delivered[7] = true, true }, 0, 0},
		"fewer spans in metrics":      {func(a *account) { a.hasMetrics, a.metrics = true, 8 }, 2, 0},
	} {
		l := newLedger()
		a := l.open("sender")
		a.sent, a.arrived = all, all
		c.change(a)
		if v := l.compare(func(string, ...any) {}); v.Lost != c.lost || v.Twice != c.twice || v.Sent != 10 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
