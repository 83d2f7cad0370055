package otlp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// Explicit buckets match a model that compares each duration: deltas with the spans of a cycle,
// running totals with those of all cycles. Points that the receiver rejects are counted.
func TestExplicitBuckets_AgainstModel(t *testing.T) {
	bounds := []float64{.002, .004, .05, .25, 1, 10}
	config := withBounds(bounds...)
	limits := totals.Limits{
		Series:    100,
		Bytes:     1 << 20,
		Idle:      time.Hour,
		Buckets:   sketch.DefaultMaxBuckets,
		Classic:   len(bounds) + 1,
		Resources: 10, ResourceBytes: 1 << 10,
	}
	deltas, running := testEncoder(config, "", nil), testEncoder(config, "", &limits)
	grid, err := sketch.GridWith(bounds)
	if err != nil {
		t.Fatal(err)
	}
	all, rnd := map[string][]uint64{}, rand.New(rand.NewPCG(5, 6))
	for range 5 {
		c, now := &testcycle.Cycle{Grid: grid}, map[string][]uint64{}
		origin := c.Origin(testOrigin)
		for range 200 {
			operation, flags := fmt.Sprint("op", rnd.IntN(3)), span.Flags(rnd.IntN(2))
			duration := rnd.Uint64() >> (28 + rnd.IntN(20))
			c.Add(rnd.IntN(2), c.Key(origin, testKey(operation)), time.Second, duration, flags, 1)
			bucket := slices.IndexFunc(bounds, func(b float64) bool {
				return sketch.Truncate(duration)/1e9 <= b
			})
			if bucket < 0 {
				bucket = len(bounds)
			}
			status := "STATUS_CODE_UNSET"
			if flags&span.Error != 0 {
				status = "STATUS_CODE_ERROR"
			}
			for _, counts := range []map[string][]uint64{now, all} {
				if counts[operation+status] == nil {
					counts[operation+status] = make([]uint64, len(bounds)+1)
				}
				counts[operation+status][bucket]++
			}
		}
		sealed := c.Seal()
		for name, of := range map[string]struct {
			encoder tested
			want    map[string][]uint64
		}{"deltas": {deltas, now}, "totals": {running, all}} {
			requests, unencodable := encodeWith(of.encoder, sealed, export.DefaultMaxPayloadBytes)
			if len(requests) != 1 || unencodable != 0 {
				t.Fatalf("%s: %d requests, %d spans in none", name, len(requests), unencodable)
			}
			if most := maxSpansInPoints(requests[0].body, 1<<20); name == "deltas" && most != 200 {
				t.Errorf("%d spans are lost with all points", most)
			}
			series := 0
			for _, p := range mustRead(t, requests[0].body)[0].Metrics[durationsName].Points {
				series++
				want := of.want[fmt.Sprint(p.Attributes["span.name"], p.Attributes["status.code"])]
				sum := uint64(0)
				for _, n := range p.Counts {
					sum += n
				}
				if !slices.Equal(p.Counts, want) || !slices.Equal(p.Bounds, bounds) || sum != *p.Count {
					t.Errorf("%s: %v has %v of %d by %v, want %v", name, p.Attributes, p.Counts, *p.Count,
						p.Bounds, want)
				}
			}
			if series != len(of.want) {
				t.Errorf("%s: %d series, want %d", name, series, len(of.want))
			}
		}
	}
}

// In milliseconds, bounds, sums and exemplars are a thousand times those in seconds, with the same
// counts. The unit makes Prometheus use milliseconds in the name.
func TestExplicitBuckets_Milliseconds(t *testing.T) {
	grid, err := sketch.GridWith([]float64{.002, .035, 1.4})
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]readMetric{}
	for _, unit := range []string{"s", "ms"} {
		c := &testcycle.Cycle{Grid: grid}
		key := c.Key(c.Origin(testOrigin), testKey("op"))
		for _, ms := range []uint64{1, 35, 36, 2000} {
			c.Add(0, key, time.Second, ms*1e6, 0, 1)
		}
		table := exemplars.New(4)
		put(table, key, false, exemplars.Exemplar{TraceLow: 1, Span: 1, Duration: uint64(2 * time.Second)})
		e := testEncoder(withBounds(.002, .035, 1.4), "", nil)
		e.exemplars = table
		if unit == "ms" {
			e.writer.useMilliseconds()
		}
		requests, _ := encodeWith(e, c.Seal(), export.DefaultMaxPayloadBytes)
		read[unit] = mustRead(t, requests[0].body)[0].Metrics[durationsName]
		if read[unit].Unit != unit {
			t.Errorf("the unit is %q, want %q", read[unit].Unit, unit)
		}
	}
	seconds, millis := read["s"].Points[0], read["ms"].Points[0]
	if !slices.Equal(millis.Bounds, []float64{2, 35, 1400}) || !slices.Equal(millis.Counts, seconds.Counts) ||
		!slices.Equal(millis.Counts, []uint64{1, 1, 1, 1}) || !isThousandfold(millis.Sum, seconds.Sum) ||
		!isThousandfold(millis.Exemplars[0].Value, seconds.Exemplars[0].Value) {
		t.Errorf("in milliseconds %+v, in seconds %+v", millis, seconds)
	}
}

// TestExplicitBuckets_MeasuresKeepUnit checks that values of measures are not converted to milliseconds.
func TestExplicitBuckets_MeasuresKeepUnit(t *testing.T) {
	wait := points.Metric{Durations: "wait", Unit: "s", IsMeasure: true, Bounds: []float64{0.5}}
	w := writer{metrics: []metricPair{{durations: newHistogram(&wait, cumulative)}}}
	w.useMilliseconds()
	if got := w.metrics[0].durations; got.unitsPerSecond != 1 || got.bounds[0] != 0.5 {
		t.Errorf("the bounds are %v, and %v units are sent per second", got.bounds, got.unitsPerSecond)
	}
}

// isThousandfold reports whether two numbers have that ratio, except for their last bits.
func isThousandfold(a, b float64) bool { return math.Abs(a/b-1000) < 1e-9 }
