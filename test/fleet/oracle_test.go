package fleet

import (
	"math/bits"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// oracle counts spans with the OpenTelemetry SDK: durations truncated like in the daemon, in seconds,
// with enough buckets to stay at the daemon's finest scale.
type oracle struct {
	reader    *sdk.ManualReader
	durations metric.Float64Histogram
}

// oracleScale is the finest scale of the daemon's histograms.
const oracleScale = 5

func newOracle(t *testing.T) *oracle {
	t.Helper()
	o := &oracle{reader: sdk.NewManualReader()}
	view := sdk.NewView(sdk.Instrument{Name: "*"}, sdk.Stream{
		Aggregation: sdk.AggregationBase2ExponentialHistogram{MaxSize: 1 << 14, MaxScale: oracleScale},
	})
	provider := sdk.NewMeterProvider(sdk.WithReader(o.reader), sdk.WithView(view),
		sdk.WithCardinalityLimit(0))
	var err error
	if o.durations, err = provider.Meter("oracle").Float64Histogram("durations"); err != nil {
		t.Fatal(err)
	}
	return o
}

// cut keeps the ten most significant bits of a duration, like the daemon: 512 values per octave.
func cut(d time.Duration) time.Duration {
	const kept = 10
	surplus := max(0, bits.Len64(uint64(d))-kept)
	return d >> surplus << surplus
}

// count counts a span under the name of its series.
func (o *oracle) count(t *testing.T, series string, duration time.Duration) {
	o.durations.Record(t.Context(), float64(cut(duration))/1e9,
		metric.WithAttributes(attribute.String("series", series)))
}

// counted returns the counted spans so far, by series.
func (o *oracle) counted(t *testing.T) map[string]*distribution {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := o.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	counted := map[string]*distribution{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, p := range m.Data.(metricdata.ExponentialHistogram[float64]).DataPoints {
				name, _ := p.Attributes.Value("series")
				counted[name.AsString()] = fromSDK(t, p)
			}
		}
	}
	return counted
}

func fromSDK(t *testing.T, p metricdata.ExponentialHistogramDataPoint[float64]) *distribution {
	t.Helper()
	d := &distribution{
		scale: int(p.Scale), count: p.Count, zeros: p.ZeroCount, sum: p.Sum,
		buckets: map[int]uint64{},
	}
	for i, n := range p.PositiveBucket.Counts {
		if n > 0 {
			d.buckets[int(p.PositiveBucket.Offset)+i] = n
		}
	}
	if len(d.buckets) > 0 && d.scale != oracleScale {
		t.Fatalf("the oracle's buckets are of scale %d: durations of too many octaves", d.scale)
	}
	return d
}

// The oracle's buckets match the definition of the histogram.
func TestOracle(t *testing.T) {
	o := newOracle(t)
	for _, d := range []time.Duration{0, 1, time.Millisecond, time.Second, time.Hour} {
		o.count(t, "a", d)
	}
	got := o.counted(t)["a"]
	// 1 ns is in (2^(-957/32), 2^(-956/32)]; the others likewise.
	want := &distribution{
		scale: 5, count: 5, zeros: 1, sum: 3601.001,
		buckets: map[int]uint64{-957: 1, -319: 1, -1: 1, 378: 1},
	}
	if differs := got.differs(want); differs != "" {
		t.Error(differs)
	}
	if cut(time.Second) != 999292928 || cut(1023) != 1023 || cut(1025) != 1024 {
		t.Errorf("cut: %d, %d, %d", cut(time.Second), cut(1023), cut(1025))
	}
}
