package daemon

import (
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
)

// The sum of all limits includes running totals, if a destination has any.
func TestMemory_IncludesRunningTotals(t *testing.T) {
	one, two := usable(t), usable(t)
	one.Exporters = []export.Exporter{elsewhere}
	endpoint, err := otlp.ParseEndpoint("http://127.0.0.1:4318")
	if err != nil {
		t.Fatal(err)
	}
	cumulative, err := otlp.New(otlp.Config{
		Variables:   otlp.Variables{Endpoint: endpoint},
		Temporality: otlp.Cumulative,
	})
	if err != nil {
		t.Fatal(err)
	}
	two.Exporters = []export.Exporter{cumulative.Describe()}
	limits := two.totalsLimits(cumulative.Describe())
	if more := two.Memory().Total - one.Memory().Total; more != int64(limits.Memory()) || more < 1<<20 {
		t.Errorf("%d bytes more for running totals, want %d", more, limits.Memory())
	}
}

// byBounds is a destination with classic buckets.
func byBounds(bounds ...float64) export.Exporter {
	return export.Exporter{Name: "elsewhere", Cumulative: true, Bounds: bounds}
}

// Durations are counted in cells that end at the bounds of all destinations. Bounds that can't be
// counted are rejected. The sum of all limits includes the totals.
func TestClassicBuckets_CountedExactly(t *testing.T) {
	config := usable(t)
	if g, err := gridFor(config.Exporters); g != sketch.AgentGrid() || err != nil {
		t.Errorf("the agent alone has another grid: %v", err)
	}
	config.Exporters = []export.Exporter{elsewhere}
	if g, err := gridFor(config.Exporters); g != sketch.CommonGrid() || err != nil {
		t.Errorf("a destination without classic buckets has another grid: %v", err)
	}
	few := byBounds(.1, 2)
	config.Exporters = []export.Exporter{few, elsewhere, byBounds(.1, .3)}
	if all := classicBounds(config.Exporters); !slices.Equal(all, []float64{.1, .3, 2}) || config.Check() != nil {
		t.Errorf("the bounds are %v: %v", all, config.Check())
	}
	if g, err := gridFor(config.Exporters); err != nil || g == sketch.CommonGrid() {
		t.Errorf("the bounds are not in the grid: %v", err)
	}
	none := byBounds()
	with, without := config.totalsLimits(few), config.totalsLimits(none)
	if with.Classic != 3 || without.Classic != 0 {
		t.Errorf("%d and %d classic buckets", with.Classic, without.Classic)
	}
	config.Exporters = []export.Exporter{none}
	less := config.Memory().Total
	config.Exporters = []export.Exporter{few}
	if more := config.Memory().Total - less; more != int64(with.Memory()-without.Memory()) || more <= 0 {
		t.Errorf("%d bytes more for classic buckets", more)
	}
	config.Exporters = []export.Exporter{byBounds(-1)}
	if err := config.Check(); err == nil || !strings.Contains(err.Error(), "-1 is not positive") {
		t.Errorf("a bound below 0: %v", err)
	}
	if _, err := New(config); err == nil {
		t.Error("a daemon with it was made")
	}
}
