package main

import "testing"

func discard(string, ...any) {}

// TestVerdict_ClientReportsMissingSpans checks that a client can report at most the missing spans as
// died, and any number as ambiguous, and that double counting under one name does not hide a loss
// under another.
func TestVerdict_ClientReportsMissingSpans(t *testing.T) {
	a, b := slot{"go", "a"}, slot{"go", "b"}
	for name, c := range map[string]struct {
		counted               counts
		ambiguous, died, lost uint64
		abandoned             uint64 // by daemons that shut down gracefully
		hasLowCapacity        bool
		want                  verdict
	}{
		"all counted":                    {counted: counts{a: 10, b: 5}},
		"missing span":                   {counted: counts{a: 9, b: 5}, want: verdict{Lost: 1}},
		"duplicate span":                 {counted: counts{a: 11, b: 5}, want: verdict{Twice: 1}},
		"one missing, another duplicate": {counted: counts{a: 11, b: 4}, want: verdict{Lost: 1, Twice: 1}},
		"ambiguous and missing":          {counted: counts{a: 10}, ambiguous: 5},
		"ambiguous and counted":          {counted: counts{a: 10, b: 5}, ambiguous: 5},
		"more than ambiguous":            {counted: counts{a: 8}, ambiguous: 5, want: verdict{Lost: 2}},
		"died":                           {counted: counts{a: 10}, died: 5, hasLowCapacity: true},
		"died and counted": {
			counted: counts{a: 10, b: 5}, died: 5, hasLowCapacity: true,
			want: verdict{Twice: 5},
		},
		"died despite capacity":   {counted: counts{a: 10}, died: 5, want: verdict{Lost: 5}},
		"died or ambiguous":       {counted: counts{a: 8}, died: 5, ambiguous: 2, hasLowCapacity: true},
		"abandoned and reported":  {counted: counts{a: 10}, abandoned: 5},
		"more than abandoned":     {counted: counts{a: 8}, abandoned: 5, want: verdict{Lost: 2}},
		"lost for another reason": {counted: counts{a: 10, b: 5}, lost: 3, want: verdict{Lost: 3}},
	} {
		account := account{
			name: "go", hasLowCapacity: c.hasLowCapacity, published: counts{a: 10, b: 5},
			ambiguous: c.ambiguous, died: c.died, lost: c.lost,
		}
		v := account.summarize(discard)
		v.add(account.compare("agent", c.counted, loss{}, c.abandoned, discard))
		c.want.Published, c.want.Ambiguous, c.want.Died = 15, c.ambiguous, c.died
		if v != c.want {
			t.Errorf("%s: %+v, want %+v", name, v, c.want)
		}
	}
}

// TestVerdict_ReceiverReportsExactLoss checks losses of acknowledged requests, of requests that only
// one destination has counted, of unacknowledged requests and of ambiguous spans, as reported by the
// successor of a killed daemon.
func TestVerdict_ReceiverReportsExactLoss(t *testing.T) {
	at := func(name string) slot { return slot{"otlp", name} }
	sent := []request{
		{at("a"), 10, 1, true}, {at("b"), 20, 1, true}, {at("c"), 4, 1, false}, {at("d"), 7, 2, true},
	}
	all := counts{at("a"): 10, at("b"): 20, at("d"): 7}
	without := func(names ...string) counts {
		c := counts{}
		for s, spans := range all {
			c[s] = spans
		}
		for _, name := range names {
			delete(c, at(name))
		}
		return c
	}
	for name, c := range map[string]struct {
		agent, other        counts
		lost, ambiguous     uint64
		missing, duplicated uint64
	}{
		"nothing lost":          {agent: all},
		"reported":              {agent: without("b"), lost: 20, missing: 20},
		"not reported":          {agent: without("b"), missing: 20},
		"too many reported":     {agent: without("b"), lost: 21, missing: 20},
		"reported but counted":  {agent: all, lost: 1, missing: 0},
		"with unacknowledged":   {agent: without("b"), lost: 24, missing: 24},
		"ambiguous and counted": {agent: all, ambiguous: 20},
		"ambiguous and missing": {agent: without("b"), ambiguous: 20},
		"ambiguous and lost":    {agent: without("a", "b"), ambiguous: 20, lost: 10, missing: 10},
		"more than ambiguous":   {agent: without("a", "b"), ambiguous: 20, missing: 10},
		"counted by one destination only": {
			agent: without("b"), other: counts{at("a"): 10, at("c"): 4, at("d"): 7},
			lost: 20, ambiguous: 4, missing: 20,
		},
		"life without a report": {agent: without("d"), missing: 7},
	} {
		counted := map[string]counts{"agent": c.agent}
		if c.other != nil {
			counted["other"] = c.other
		}
		losses := []loss{{1, "otlp", 2, "", c.lost, c.ambiguous}, {1, "apm", 2, "", 1000, 0}}
		v := compareReceiver("otlp", sent, losses, counted, discard)
		if v.Reported != c.lost || v.Missing != c.missing || v.Twice != c.duplicated || v.Ambiguous != c.ambiguous {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
