package traces

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// sayAllButTypes fills all fields of a payload except the types of spans.
func (p *fakePayload) sayAllButTypes() {
	for _, trace := range p.traces {
		for _, s := range trace {
			for _, text := range []*string{&s.service, &s.name, &s.resource} {
				if *text == "" {
					*text = "said"
				}
			}
			for i := range s.meta {
				if s.meta[i][1] == "" {
					s.meta[i][1] = "said"
				}
			}
		}
	}
}

// TestEmptyString_Misplaced uses v0.5 bodies in which only spans without a type refer to the empty
// string, at any position in the string table. They must be counted like in the agent, which counts
// more spans than with the empty string in the first position.
func TestEmptyString_Misplaced(t *testing.T) {
	o := makeOracle()
	policy := agentPolicy(t, o.conf)
	now := time.Now()
	since := now.Add(-2 * time.Hour)
	rnd := rand.New(rand.NewPCG(13, 5))
	c := dd.NewCounter()
	accepted, uncounted := 0, 0
	for i := range 3_000 {
		p := randomPayload(rnd, now)
		p.sayAllButTypes()
		body := p.v05(rnd)
		var actual, expected map[string]total
		var err, refused error
		withinOneBucket(func() {
			err = c.Count(datadog.FormatV05, body, "java", true, policy)
			expected, refused = o.count(t, datadog.FormatV05, slices.Clone(body), "java", true, since)
			if err == nil && refused == nil {
				actual = ours(t, c.Batches, "java", since)
			}
		})
		if err != nil {
			uncounted++
			continue
		}
		accepted++
		if refused != nil {
			t.Fatalf("case %d: counted, but the agent rejects it: %v", i, refused)
		}
		if !maps.Equal(actual, expected) {
			t.Fatalf("case %d:\n ours %v\nagent %v", i, actual, expected)
		}
	}
	t.Logf("%d bodies counted, %d left to the agent", accepted, uncounted)
	if accepted < 2_000 || uncounted < 100 {
		t.Errorf("%d bodies were counted and %d left to the agent: the comparison has little coverage", accepted, uncounted)
	}
}
