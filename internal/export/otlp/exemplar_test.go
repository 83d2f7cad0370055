package otlp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// testCycle is the number of the cycles of package testcycle.
const testCycle = 1

// put adds a span as an exemplar of a key, unless the key has a slower one.
func put(to *exemplars.Table, key registry.KeyID, isError bool, e exemplars.Exemplar) {
	one := exemplars.Span{Exemplar: e, Cycle: testCycle, Key: uint32(key), IsError: isError}
	to.Offer(slices.Values([]exemplars.Span{one}))
}

// sampledCycle returns a random cycle with exemplars of some of its spans, and the largest duration
// of an exemplar by operation and outcome.
func sampledCycle(rnd *rand.Rand) (*aggregate.Sealed, *exemplars.Table, map[string]uint64) {
	c, table, slowest := newCycle(), exemplars.New(1000), map[string]uint64{}
	origin := c.Origin(testOrigin)
	for i := range 1 + rnd.IntN(12) {
		name := fmt.Sprint("op", rnd.IntN(8)) // some keys share a series
		k := testKey(name)
		k.Resource = fmt.Sprint("r", i)
		key := c.Key(origin, k)
		for range rnd.IntN(30) {
			ns, flags, after := rnd.Uint64()>>(20+rnd.IntN(44)), span.Flags(rnd.IntN(4)), time.Duration(rnd.IntN(40)-15)*time.Second
			c.Add(rnd.IntN(2), key, after, ns, flags, 1)
			if rnd.IntN(3) == 0 {
				isError := flags&span.Error != 0
				put(table, key, isError, exemplars.Exemplar{
					TraceHigh: rnd.Uint64(),
					TraceLow:  1,
					Span:      ns + 1,
					Duration:  ns,
					End:       testcycle.Opened.Add(after).UnixNano(),
				})
				series := fmt.Sprint(name, isError)
				slowest[series] = max(slowest[series], ns+1)
			}
		}
	}
	return c.Seal(), table, slowest
}

// In random cycles, as deltas and as running totals, each series has at most one exemplar, the
// slowest one of its keys. Its value is within a bucket that counts the span, and its time within
// the cycle.
func TestExemplar_SlowestOfSeries(t *testing.T) {
	for seed := range uint64(40) {
		sealed, table, slowest := sampledCycle(rand.New(rand.NewPCG(seed, 3)))
		for _, limits := range []*totals.Limits{nil, &roomForAll} {
			e, temporality := testEncoder(withAll(), "", limits), uint64(delta)
			if limits != nil {
				temporality = cumulative
			}
			e.exemplars = table
			requests, _ := encodeWith(e, sealed, 1<<20)
			found := 0
			visitPoints(t, requests, temporality, func(series, metric string, p *readPoint) {
				name := fmt.Sprint(p.Attributes["span.name"],
					p.Attributes["status.code"] == "STATUS_CODE_ERROR")
				switch want := slowest[name]; {
				case metric != durationsName || want == 0:
					if len(p.Exemplars) != 0 {
						t.Fatalf("seed %d: %s of %s has %+v", seed, metric, name, p.Exemplars)
					}
				case len(p.Exemplars) != 1 || p.Exemplars[0].SpanID != fmt.Sprintf("%016x", want):
					t.Fatalf("seed %d: %s has %+v, want that of %d ns", seed, name, p.Exemplars, want-1)
				default:
					found++
					checkExemplar(t, p)
				}
			})
			if found != len(slowest) {
				t.Fatalf("seed %d: %d of %d exemplars", seed, found, len(slowest))
			}
		}
	}
}

func checkExemplar(t *testing.T, p *readPoint) {
	t.Helper()
	x := p.Exemplars[0]
	if x.Time < p.Start || x.Time > p.End {
		t.Errorf("an exemplar at %d of a window from %d to %d", x.Time, p.Start, p.End)
	}
	if x.Value == 0 {
		if p.Zeros == 0 {
			t.Error("an exemplar that took no time, where no span did")
		}
		return
	}
	bucket := int64(math.Ceil(math.Log2(x.Value)*math.Exp2(float64(p.Scale)))) - 1 - p.Offset
	if bucket < 0 || bucket >= int64(len(p.Counts)) || p.Counts[bucket] == 0 {
		t.Errorf("%v s is in bucket %d of %v", x.Value, bucket, p.Counts)
	}
}

// An exemplar is sent with its own cycle only. Running totals do not repeat it.
func TestExemplar_OnlyInItsCycle(t *testing.T) {
	for _, limits := range []*totals.Limits{nil, &roomForAll} {
		c, table := newCycle(), exemplars.New(4)
		key := c.Key(c.Origin(testOrigin), testKey("op"))
		c.Add(0, key, 0, 1000, 0, 1)
		put(table, key, false, exemplars.Exemplar{TraceLow: 1, Span: 1, Duration: 1000})
		e := testEncoder(withAll(), "", limits)
		e.exemplars = table
		sealed := c.Seal()
		for cycle, want := range []int{0: 0, testCycle: 1, 2: 0} {
			sealed.Cycle = uint64(cycle)
			requests, _ := encodeWith(e, sealed, 1<<20)
			if got := mustRead(t,
				requests[0].body)[0].Metrics[durationsName].Points[0].Exemplars; len(got) != want {
				t.Errorf("cycle %d has %+v", cycle, got)
			}
		}
	}
}

func TestExemplar_OnOverflowSeries(t *testing.T) {
	limits := roomForAll
	limits.Series = 1
	c, table := newCycle(), exemplars.New(8)
	origin := c.Origin(testOrigin)
	for i := range uint64(4) {
		key := c.Key(origin, testKey(fmt.Sprint("op", i)))
		c.Add(0, key, 0, 1000*i+1, 0, 1)
		put(table, key, false, exemplars.Exemplar{TraceLow: 1, Span: i + 1, Duration: 1000*i + 1})
	}
	e := testEncoder(withAll(), "", &limits)
	e.exemplars = table
	requests, _ := encodeWith(e, c.Seal(), 1<<20)
	got := map[any]string{}
	visitPoints(t, requests, cumulative, func(_, metric string, p *readPoint) {
		if metric == durationsName {
			got[p.Attributes["span.name"]] = p.Exemplars[0].SpanID
		}
	})
	if len(got) != 2 || got["op0"] != "0000000000000001" || got[nil] != "0000000000000004" {
		t.Errorf("%v", got)
	}
}
