package otlp

import (
	"net/http"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
)

// TestExemplars_ForwardedSpansOnly also checks that the response of the upstream makes no difference.
func TestExemplars_ForwardedSpansOnly(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		keep   *sampling.Policy
		want   uint64
	}{
		"accepted": {http.StatusOK, nil, 1}, "refused": {http.StatusBadRequest, nil, 1},
		"all sampled":  {http.StatusOK, &sampling.Policy{Share: 1}, 1},
		"none sampled": {http.StatusOK, &sampling.Policy{Share: 0}, 0},
	} {
		to := newCollector(t, false, func(w http.ResponseWriter, _ int) { w.WriteHeader(c.status) })
		forward, table := forwardTo(t, to.url()), exemplars.New(1)
		h := newHarness(t, func(config *Config, a *aggregate.Config) {
			forward(config, a)
			config.Exemplars, config.Keep = table, c.keep
		})
		post(t, h.client(false), exported("shop", 0, 5, 1))
		h.stop()
		if got := table.Counts(); got.Taken != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestExemplars_SlowestForwardedSpan checks that the exemplar of a series is its slowest forwarded span, with the ids of that
// span. A capacity of one exemplar is enough for consecutive requests.
func TestExemplars_SlowestForwardedSpan(t *testing.T) {
	to := newCollector(t, true, nil)
	forward, table := forwardTo(t, to.url()), exemplars.New(1)
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		forward(c, a)
		c.Exemplars = table
	})
	for _, isHTTP2 := range []bool{false, true} {
		if a := post(t, h.client(isHTTP2), exported("shop", 41, 1, 1)); a.status != http.StatusOK {
			t.Errorf("answered %+v", a)
		}
	}
	h.stop()
	found := exemplars.Exemplar{}
	for cycle := range uint64(8) { // the interval of a cycle is arbitrary
		for key := range uint32(4) {
			if e := table.Seal(cycle).Find(key, false); e.Span != 0 {
				found = e
			}
		}
	}
	if got := table.Counts(); found.TraceLow == 0 || found.Span != found.TraceLow || found.Duration != 1000 ||
		got.Taken != 1 {
		t.Errorf("found %+v; %+v", found, got)
	}
}
