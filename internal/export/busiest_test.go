package export

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// TestBusiest_AgreesWithLibrary holds counts and quantiles against a map and
// the sketch library, over keys that several drainers and buckets have parts of.
func TestBusiest_AgreesWithLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var c testcycle.Cycle
	type truth struct {
		hits, errors float64
		sketch       *ddsketch.DDSketch
	}
	var origins [3]registry.OriginID
	for i := range origins {
		origins[i] = c.Origin(span.Origin{Service: fmt.Sprint("origin-", i), Env: "prod"})
	}
	truths := map[string]*truth{}
	perOrigin := map[string]uint64{}
	mapping, err := sketch.AgentMapping.Library()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		origin := i % 3
		resource := fmt.Sprint("r", i)
		id := c.Key(origins[origin], span.Key{Service: "s", Operation: "o", Resource: resource})
		now := &truth{sketch: ddsketch.NewDDSketch(mapping, store.NewDenseStore(), store.NewDenseStore())}
		for range 20 + 13*i {
			ns, flags := uint64(math.Exp(random.Float64()*25)), span.Flags(0)
			if random.IntN(5) == 0 {
				flags = span.Error
				now.errors++
			}
			if random.IntN(20) == 0 {
				ns = 0
			}
			c.Add(random.IntN(3), id, 0, ns, flags, 1)
			now.hits++
			if err := now.sketch.Add(truncated(ns)); err != nil {
				t.Fatal(err)
			}
			perOrigin[fmt.Sprint("origin-", origin)]++
		}
		truths[resource] = now
	}
	b := busiestOf(c.Seal())
	if len(b.Rows) != maxBusyKeys || b.Aggregates != 50 {
		t.Fatalf("%d rows of %d aggregates", len(b.Rows), b.Aggregates)
	}
	for i, row := range b.Rows {
		if want := fmt.Sprint("r", 49-i); row.Resource != want {
			t.Errorf("row %d is %s, want %s", i, row.Resource, want)
		}
		want := truths[row.Resource]
		if row.Hits != want.hits || row.Errors != want.errors {
			t.Errorf("%s: %v hits, %v errors, want %v, %v", row.Resource, row.Hits, row.Errors, want.hits,
				want.errors)
		}
		if all, failed := sum(row.Latency), sum(row.ErrorLatency); float64(all) != want.hits ||
			float64(failed) != want.errors {
			t.Errorf("%s: curves of %d and %d", row.Resource, all, failed)
		}
		for q, got := range map[float64]float64{.5: row.P50, .95: row.P95, .99: row.P99} {
			value, err := want.sketch.GetValueAtQuantile(q)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got*1e9-value) > value*1e-9 {
				t.Errorf("%s: quantile %v is %v, the library says %v", row.Resource, q, got*1e9, value)
			}
		}
	}
	if !slices.IsSortedFunc(b.Origins, func(a, b BusyOrigin) int { return cmp.Compare(b.Spans, a.Spans) }) {
		t.Errorf("origins are not sorted: %v", b.Origins)
	}
	total := uint64(0)
	for _, o := range b.Origins {
		total += o.Spans
		if o.Spans != perOrigin[o.Service] {
			t.Errorf("%s has %d spans, want %d", o.Service, o.Spans, perOrigin[o.Service])
		}
	}
	if total != b.Spans {
		t.Errorf("%d spans, but %d of origins", b.Spans, total)
	}
}

// truncated is a duration as the agent's sketch sees it.
func truncated(ns uint64) float64 {
	return math.Float64frombits(math.Float64bits(float64(ns)) &^ (1<<43 - 1))
}

func sum(counts []uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// TestBusiest_Largest compares the choice with sorting.
func TestBusiest_Largest(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		counts := make([]uint64, random.IntN(60))
		var all []int
		for i := range counts {
			if counts[i] = uint64(random.IntN(12)); counts[i] > 0 {
				all = append(all, i)
			}
		}
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
		want := all[:min(len(all), 7)]
		if got := indexesOfLargest(counts, 7); !slices.Equal(got, want) {
			t.Fatalf("largest of %v: %v, want %v", counts, got, want)
		}
	}
}

// TestColumn_StaysWithinCurve checks the smallest and the largest values.
func TestColumn_StaysWithinCurve(t *testing.T) {
	for ns, want := range map[float64]int{
		0: 0, 1: 0, 1e3: 0, 1e3 + 1: 0, 1e4: 6, 1e9: 36, 1e11: 47, math.MaxFloat64: 47, math.Inf(1): 47,
	} {
		if got := curveColumn(ns); got != want {
			t.Errorf("column(%v) = %d, want %d", ns, got, want)
		}
	}
}

func TestBusiest_LabelsAreBounded(t *testing.T) {
	var c testcycle.Cycle
	key := c.Key(c.Origin(span.Origin{}), span.Key{Resource: strings.Repeat("é", 5000)})
	c.Add(0, key, 0, 1, 0, 1)
	if got := len(busiestOf(c.Seal()).Rows[0].Resource); got > busiestLabel {
		t.Errorf("a resource of %d bytes", got)
	}
	if empty := busiestOf(&aggregate.Sealed{}); len(empty.Rows) != 0 || empty.Rows == nil ||
		empty.Origins == nil {
		t.Errorf("nothing sealed gives %+v", empty)
	}
}

// BenchmarkBusiest measures the time that a flush of 2048 aggregates needs to find the busiest ones.
func BenchmarkBusiest(b *testing.B) {
	random := rand.New(rand.NewPCG(7, 8))
	var c testcycle.Cycle
	origin := c.Origin(span.Origin{Service: "web", Env: "prod"})
	for i := range 2048 {
		key := c.Key(origin, span.Key{Service: "s", Operation: "o", Resource: fmt.Sprint("GET /", i)})
		for range 20 {
			c.Add(0, key, 0, uint64(1e6+20e6*random.ExpFloat64()), 0, 1)
		}
	}
	sealed, l := c.Seal(), new(busiestReader)
	var m Merger
	rows := m.Merge(sealed)
	b.ReportAllocs()
	for b.Loop() {
		l.findBusiest(sealed, rows)
	}
}

// busiestOf merges a cycle and looks at it.
func busiestOf(sealed *aggregate.Sealed) *Busiest {
	var m Merger
	return new(busiestReader).findBusiest(sealed, m.Merge(sealed))
}
