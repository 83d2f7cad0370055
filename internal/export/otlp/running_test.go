package otlp

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

var roomForAll = totals.Limits{
	Series:        1000,
	Bytes:         1 << 20,
	Idle:          time.Hour,
	Buckets:       sketch.DefaultMaxBuckets,
	Resources:     2,
	ResourceBytes: 1 << 10,
}

// addedUp is the sum of the deltas of a series.
type addedUp struct {
	start   uint64
	calls   uint64
	seconds float64
	buckets sketch.Buckets
}

// visitPoints visits the points of requests, by the name of their series.
func visitPoints(t *testing.T, requests []sent, temporality uint64,
	visit func(series, metric string, p *readPoint),
) (spans uint64) {
	t.Helper()
	for _, request := range requests {
		spans += request.spans
		for _, r := range mustRead(t, request.body) {
			for name, m := range r.Metrics {
				if m.Temporality != temporality {
					t.Fatalf("temporality %d", m.Temporality)
				}
				for i := range m.Points {
					visit(fmt.Sprint(r.Attributes, m.Points[i].Attributes), name, &m.Points[i])
				}
			}
		}
	}
	return spans
}

// TestRunningTotals_AreSumsOfDeltas encodes random cycles as deltas and as running totals, in
// requests of several lengths. Each cycle contains the totals of all series, and each total is the
// sum of its deltas.
func TestRunningTotals_AreSumsOfDeltas(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		limit := []int{1 << 20, 4000}[seed%2]
		deltas, totals := testEncoder(withAll(), "", nil), testEncoder(withAll(), "", &roomForAll)
		want := map[string]*addedUp{}
		for range 6 {
			c := newCycle()
			counted := uint64(0)
			for o := range 1 + rnd.IntN(3) {
				origin := c.Origin(span.Origin{Service: "web", Host: fmt.Sprint(o)})
				for range 1 + rnd.IntN(6) {
					key := c.Key(origin, testKey(fmt.Sprint("op", rnd.IntN(8))))
					for range 1 + rnd.IntN(20) {
						c.Add(rnd.IntN(2), key, time.Second, rnd.Uint64()>>(20+rnd.IntN(44)),
							span.Flags(rnd.IntN(4)), 1)
						counted++
					}
				}
			}
			sealed := c.Seal()
			requests, _ := encodeWith(deltas, sealed, limit)
			var end uint64
			visitPoints(t, requests, delta, func(series, metric string, p *readPoint) {
				w := want[series]
				if w == nil {
					w = &addedUp{start: p.Start, buckets: sketch.Buckets{Scale: sketch.MaxScale}}
					want[series] = w
				}
				end = p.End
				if metric == callsName {
					w.calls += *p.Calls
					return
				}
				w.seconds += p.Sum
				w.buckets.Add(&sketch.Buckets{
					Scale:  int32(p.Scale),
					Offset: int32(p.Offset),
					Counts: p.Counts,
					Zeros:  p.Zeros,
					Spans:  *p.Count,
				}, sketch.DefaultMaxBuckets)
			})
			requests, unencodable := encodeWith(totals, sealed, limit)
			seen := map[string]bool{}
			spans := visitPoints(t, requests, cumulative, func(series, metric string, p *readPoint) {
				w := want[series]
				seen[series+metric] = true
				if w == nil || p.Start != w.start || p.End != end {
					t.Fatalf("seed %d: %s from %d to %d, want %v to %d", seed, series, p.Start, p.End, w, end)
				}
				if metric == callsName {
					if *p.Calls != w.calls {
						t.Fatalf("seed %d: %d calls of %s, want %d", seed, *p.Calls, series, w.calls)
					}
				} else if got := fmt.Sprint(p.Scale, p.Offset, p.Counts, p.Zeros, *p.Count); math.Abs(p.Sum-w.seconds) > 1e-9*w.seconds ||
					got != fmt.Sprint(w.buckets.Scale, w.buckets.Offset, w.buckets.Counts, w.buckets.Zeros,
						w.buckets.Spans) {
					t.Fatalf("seed %d: %s is %v with a sum of %v, want %v", seed, series, got, p.Sum, w)
				}
			})
			if len(seen) != 2*len(want) || spans != counted || unencodable != 0 {
				t.Fatalf("seed %d: %d points of %d series for %d spans of %d", seed, len(seen), len(want),
					spans, counted)
			}
			if limit < 1<<20 && len(requests) < 2 && len(want) > 20 {
				t.Errorf("seed %d: one request of %d bytes", seed, len(requests[0].body))
			}
		}
	}
}

// Two daemons that send to one receiver share no series, in any dialect, including overflow series.
func TestOverflow_SeparatePerDaemon(t *testing.T) {
	for _, resources := range []int{0, 1} {
		for _, isDatadog := range []bool{false, true} {
			seen := map[string]string{} // instance by series
			for _, instance := range []string{"one", "other"} {
				d := points.Config{Instance: instance}
				if isDatadog {
					d.Dialect = points.Datadog
				}
				limits := roomForAll
				limits.Series, limits.Resources = 1, resources
				c := newCycle()
				origin := c.Origin(testOrigin)
				for i := range 3 {
					c.Add(0, c.Key(origin, testKey(fmt.Sprint("op", i))), 0, 1000, 0, 1)
				}
				overflows := 0
				requests, _ := encodeWith(testEncoder(d, "", &limits), c.Seal(), 1<<20)
				for _, request := range requests {
					for _, r := range mustRead(t, request.body) {
						for name, m := range r.Metrics {
							for _, p := range m.Points {
								if p.Attributes["otel.metric.overflow"] != true {
									continue
								}
								overflows++
								series := fmt.Sprint(name, r.Attributes, p.Attributes)
								if of, is := seen[series]; is && of != instance {
									t.Errorf("datadog %v, %d resources: both have %s", isDatadog, resources,
										series)
								}
								seen[series] = instance
							}
						}
					}
				}
				if overflows == 0 {
					t.Errorf("datadog %v, %d resources: nothing overflowed", isDatadog, resources)
				}
			}
		}
	}
}

// A total that exceeds the limit of a request loses its undelivered spans only. Delivered ones stay
// flushed.
func TestRunningTotals_TooLargeLosesUndelivered(t *testing.T) {
	e := testEncoder(withAll(), "", &roomForAll)
	cycle := func(spans, limit int) (lost uint64) {
		c := newCycle()
		for key := c.Key(c.Origin(testOrigin), testKey("op")); spans > 0; spans-- {
			c.Add(0, key, 0, 1000, 0, 1)
		}
		_, lost = encodeWith(e, c.Seal(), limit)
		return lost
	}
	if lost := cycle(5, 1<<20); lost != 0 {
		t.Errorf("of 5 spans that fit %d are lost", lost)
	}
	if lost := cycle(3, 10); lost != 3 {
		t.Errorf("of 3 more, of which none fits, %d are lost", lost)
	}
	if lost := cycle(2, 10); lost != 2 {
		t.Errorf("of 2 more %d are lost", lost)
	}
}

// Spans beyond the limits are in the overflow series of their resource, or in the common overflow
// series if there are too many resources.
func TestOverflow_SpansBeyondLimits(t *testing.T) {
	for resources, want := range map[int]map[string]uint64{
		1: {"web:op0<nil>": 1, "web:op1<nil>": 1, "web:<nil> true": 3},
		0: {"web:op0<nil>": 1, "web:op1<nil>": 1, "tracer_blocked_value:<nil> true": 3},
	} {
		limits := roomForAll
		limits.Series, limits.Resources = 2, resources
		c := newCycle()
		origin := c.Origin(testOrigin)
		for i := range 5 {
			c.Add(0, c.Key(origin, testKey(fmt.Sprint("op", i))), 0, 1000, 0, 1)
		}
		e, sealed := testEncoder(withAll(), "", &limits), c.Seal()
		var m export.Merger
		cycle := &export.Cycle{Sealed: sealed, Rows: m.Merge(sealed), Limit: 1 << 20}
		calls := map[string]uint64{}
		made := e.encode(cycle, func(r *request) {
			for _, r := range mustRead(t, r.body) {
				for _, p := range r.Metrics[callsName].Points {
					calls[fmt.Sprint(r.Attributes["service.name"], ":", p.Attributes["span.name"],
						p.Attributes["otel.metric.overflow"])] += *p.Calls
				}
			}
		})
		if !maps.Equal(calls, want) || made.Totals != (export.TotalsStats{Series: 3, Overflowed: 3}) {
			t.Errorf("%d resources: %v, %+v", resources, calls, made.Totals)
		}
	}
}
