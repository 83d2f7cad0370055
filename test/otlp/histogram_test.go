package otlp

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// truncate keeps the ten most significant bits of a duration and converts it to seconds.
func truncate(nanoseconds uint64) float64 {
	const low = 1<<43 - 1
	return math.Float64frombits(math.Float64bits(float64(nanoseconds))&^low) / 1e9
}

type point = metricdata.ExponentialHistogramDataPoint[float64]

// ofTheSDK returns the SDK's histogram of the durations.
func ofTheSDK(t *testing.T, durations []uint64, most int) point {
	t.Helper()
	record, collect := sdkHistogram(t, most)
	record(durations)
	return collect()
}

// sdkHistogram creates a cumulative SDK histogram.
func sdkHistogram(t *testing.T, most int) (record func([]uint64), collect func() point) {
	t.Helper()
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(metric.NewView(
		metric.Instrument{Name: "*"},
		metric.Stream{Aggregation: metric.AggregationBase2ExponentialHistogram{
			MaxSize:  int32(most),
			MaxScale: sketch.MaxScale,
		}},
	)))
	histogram, err := provider.Meter("test").Float64Histogram("duration")
	if err != nil {
		t.Fatal(err)
	}
	record = func(durations []uint64) {
		for _, ns := range durations {
			histogram.Record(context.Background(), truncate(ns))
		}
	}
	collect = func() point {
		var collected metricdata.ResourceMetrics
		if err := reader.Collect(context.Background(), &collected); err != nil {
			t.Fatal(err)
		}
		data := collected.ScopeMetrics[0].Metrics[0].Data
		return data.(metricdata.ExponentialHistogram[float64]).DataPoints[0]
	}
	return record, collect
}

// counted returns the tables of two drainers that have counted the durations, every other one as an
// error.
func counted(durations []uint64) (parts []aggregate.Part) {
	opened := time.Unix(1_700_000_000, 0)
	memory := sketch.NewMemory(64<<20, sketch.CommonGrid())
	var tables [2]*aggregate.Table
	for i := range tables {
		tables[i] = aggregate.NewTable(1, 10*time.Second, memory)
		tables[i].Begin(opened)
	}
	window := aggregate.NewWindow(0, opened, 10*time.Second)
	for i, ns := range durations {
		end := opened.UnixNano()
		slot := aggregate.Slot{
			Key: registry.KeyID(0), Duration: ns, End: end, Weight: 1,
			Place: window.Place(end),
		}
		if i%2 == 1 {
			slot.Flags = span.Error
		}
		tables[i/2%2].Add(&slot)
	}
	for _, table := range tables {
		for i := range table.Len() {
			parts = append(parts, table.Part(i))
		}
	}
	return parts
}

func compare(t *testing.T, got sketch.Buckets, want point) {
	t.Helper()
	if got.Scale != want.Scale || got.Zeros != want.ZeroCount || got.Spans != want.Count ||
		len(want.NegativeBucket.Counts) != 0 {
		t.Fatalf("scale %d, %d zeros of %d; want %d, %d of %d", got.Scale, got.Zeros, got.Spans, want.Scale,
			want.ZeroCount, want.Count)
	}
	if got.Offset != want.PositiveBucket.Offset || !slices.Equal(got.Counts, want.PositiveBucket.Counts) {
		t.Fatalf("buckets from %d on %v\nwant from %d on %v", got.Offset, got.Counts,
			want.PositiveBucket.Offset, want.PositiveBucket.Counts)
	}
}

// everyValue returns each value that a duration can have after truncation.
func everyValue() (all []uint64) {
	for ns := range uint64(1024) {
		all = append(all, ns)
	}
	for shift := 1; shift <= 54; shift++ {
		for mantissa := uint64(512); mantissa < 1024; mantissa++ {
			all = append(all, mantissa<<shift)
		}
	}
	return append(all, math.MaxUint64)
}

func powersOfTwo() (all []uint64) {
	for shift := range 64 {
		all = append(all, 1<<shift-1, 1<<shift, 1<<shift+1)
	}
	return all
}

// bounds returns the durations around each bucket boundary.
func bounds() (all []uint64) {
	for bucket := -956; bucket < 1091; bucket++ {
		bound := uint64(math.Exp2(float64(bucket)/32) * 1e9)
		all = append(all, max(bound, 1)-1, bound, bound+1)
	}
	return all
}

func random(seed uint64) (all []uint64) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	middle, width := rnd.Float64()*math.Log(1e15), rnd.ExpFloat64()*3
	for range 1 + rnd.IntN(3000) {
		all = append(all, uint64(math.Exp(min(middle+width*rnd.NormFloat64(), 43))))
	}
	return all
}

// TestBuckets_SameAsSDK compares scale, offset, zero count and every bucket, for spans with and without
// errors, for any order of the SDK's input, and for several numbers of buckets.
func TestBuckets_SameAsSDK(t *testing.T) {
	sets := map[string][]uint64{
		"every value": everyValue(), "powers of two": powersOfTwo(), "bounds": bounds(),
		"zeros": {0, 0, 0, 0}, "zeros and one": {0, 0, 0, 1_000_000, 0}, "one": {1_234_567},
		"the ends": {1, 1, math.MaxUint64, math.MaxUint64},
		"a second": {1e9 - 1, 1e9 - 1, 1e9, 1e9, 1e9 + 1, 1e9 + 1},
	}
	for seed := range uint64(60) {
		sets[fmt.Sprint("random ", seed)] = random(seed)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	scales := map[int32]bool{}
	for name, durations := range sets {
		for _, order := range []string{"rising", "falling", "shuffled"} {
			t.Run(name+" "+order, func(t *testing.T) {
				switch order {
				case "rising":
					slices.Sort(durations)
				case "falling":
					slices.Reverse(durations)
				default:
					rnd.Shuffle(len(durations), func(i, j int) {
						durations[i], durations[j] = durations[j], durations[i]
					})
				}
				parts := counted(durations)
				var ok, failed []uint64
				for i, ns := range durations {
					if i%2 == 0 {
						ok = append(ok, ns)
					} else {
						failed = append(failed, ns)
					}
				}
				var ours [2]sketch.Histogram
				for i := range parts {
					parts[i].ReadOK(&ours[0])
					parts[i].ReadErrors(&ours[1])
				}
				for _, most := range []int{sketch.DefaultMaxBuckets, 2, 17, 320} {
					for i, same := range [][]uint64{ok, failed} {
						if len(same) > 0 {
							want := ofTheSDK(t, same, most)
							compare(t, ours[i].Buckets(most), want)
							scales[want.Scale] = true
						}
					}
				}
			})
		}
	}
	for scale := int32(-5); scale <= sketch.MaxScale; scale++ {
		if !scales[scale] {
			t.Errorf("nothing had the scale %d", scale)
		}
	}
}

// TestCumulative_SameAsSDK checks that the histograms of consecutive intervals add up to the
// cumulative histogram of the SDK after each interval.
func TestCumulative_SameAsSDK(t *testing.T) {
	lowered := 0
	for seed := range uint64(20) {
		most := []int{sketch.DefaultMaxBuckets, 20}[seed%2]
		record, collect := sdkHistogram(t, most)
		total := sketch.Buckets{Scale: sketch.MaxScale}
		var h sketch.Histogram
		for interval := range uint64(12) {
			durations := random(100*seed + interval)
			record(durations)
			for _, part := range counted(durations) {
				part.ReadOK(&h)
				part.ReadErrors(&h)
			}
			b, before := h.Buckets(most), total.Scale
			total.Add(&b, most)
			h.Reset()
			compare(t, total, collect())
			if total.Scale < before && interval > 0 {
				lowered++
			}
		}
	}
	if lowered == 0 {
		t.Error("no total's scale was lowered by a later interval")
	}
}
