package daemon

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/otlp"
)

// TestRunningTotalsAreInTheSum of all limits, where there are any.
func TestRunningTotalsAreInTheSum(t *testing.T) {
	one, two := usable(t), usable(t)
	one.Exporters = []flush.Exporter{elsewhere{}}
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
	two.Exporters = []flush.Exporter{cumulative}
	limits := two.totals()
	if more := two.Memory().Total - one.Memory().Total; more != int64(limits.Memory()) || more < 1<<20 {
		t.Errorf("%d bytes more for running totals, want %d", more, limits.Memory())
	}
}
