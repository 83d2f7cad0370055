package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// A few daemons need no collector: Prometheus stores their cumulative totals, or adds up their deltas
// itself. In both cases it has every bucket, and each quantile is within the bounds of the right
// bucket, even though a daemon is replaced by another one and, for cumulative totals, Prometheus is
// unavailable for a while.
func TestPrometheus_WithoutCollector(t *testing.T) {
	t.Run("cumulative", func(t *testing.T) {
		p := startPrometheus(t)
		direct(t, p, func(int) {}, "--otlp-temporality=cumulative")
	})
	t.Run("cumulative, and Prometheus goes for a while", func(t *testing.T) {
		p := startPrometheus(t)
		direct(t, p, func(round int) {
			switch round {
			case 2:
				p.stop()
			case 4:
				p.begin(t)
			}
		}, "--otlp-temporality=cumulative")
	})
	t.Run("delta", func(t *testing.T) {
		p := startPrometheus(t, "--enable-feature=otlp-deltatocumulative")
		direct(t, p, func(int) {})
	})
}

// direct publishes spans of three pods to a daemon and to its successor in rounds, calls before at the
// start of each round, and compares the data in Prometheus with the oracle.
func direct(t *testing.T, p *prometheus, before func(round int), args ...string) {
	const pods, daemons, rounds, spansOfRound = 3, 2, 5, 1000
	args = append(args, "--otlp-metrics-endpoint", p.url+"/api/v1/otlp/v1/metrics")
	o := newOracle(t)
	r := rand.New(rand.NewPCG(22, 3))
	exact := []float64{} // durations of one shape, over all pods
	for range daemons {
		d := startDaemon(t, "node-1", pods, args...)
		for round := range rounds { // so that cumulative totals cover several intervals
			before(round)
			spans := []loadedSpan{}
			for range spansOfRound {
				s := loadedSpan{r.IntN(pods), &shapes[r.IntN(len(shapes))], 0}
				s.duration = s.shape.duration(r)
				spans = append(spans, s)
				o.count(t, d.name(&s), s.duration)
				if s.shape == &shapes[0] {
					exact = append(exact, float64(cut(s.duration))/1e9)
				}
			}
			if err := d.publish(spans); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		d.hands(t)
		eventually.True(t, "the daemon has delivered every span",
			func() bool { return d.accounting().Flushed == rounds*spansOfRound })
		d.mustBalance(rounds * spansOfRound)
		d.stop()
	}
	want := o.counted(t)
	eventually.True(t, "Prometheus has every span",
		func() bool { return p.total() == daemons*rounds*spansOfRound })
	has, counts := p.of(durations, ""), p.of(calls, "")
	for name, distribution := range want {
		if has[name] == nil || counts[name] == nil {
			t.Errorf("Prometheus has no %s", name)
		} else if differs := has[name].differs(distribution); differs != "" ||
			counts[name].count != distribution.count {
			t.Errorf("%s: %d calls; %s", name, counts[name].count, differs)
		}
	}
	if len(has) != len(want) {
		t.Errorf("Prometheus has %d series, the oracle counted %d", len(has), len(want))
	}
	p.mustSayQuantiles(exact, shapes[0].name)
}

// total returns the number of spans in all histograms of Prometheus.
func (p *prometheus) total() uint64 {
	p.t.Helper()
	all := p.ask("histogram_count(sum(" + prometheusNames[durations] + "))")
	if len(all) == 0 {
		return 0
	}
	return uint64(all[0].value)
}

// mustSayQuantiles compares histogram_quantile over the sum of a shape's series with the exact
// durations.
func (p *prometheus) mustSayQuantiles(exact []float64, spanName string) {
	p.t.Helper()
	slices.Sort(exact)
	selector := fmt.Sprintf("%s{span_name=%q, status_code=%q}", prometheusNames[durations], spanName,
		shapes[0].status())
	scale := p.ask("sum(" + selector + ")")[0].histogram.scale
	factor := math.Exp2(math.Exp2(-float64(scale))) // ratio of a bucket's bounds
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		got := p.ask(fmt.Sprintf("histogram_quantile(%g, sum(%s))", q, selector))[0].value
		want := exact[max(0, int(math.Ceil(q*float64(len(exact))))-1)]
		if got/want > factor || want/got > factor {
			p.t.Errorf("Prometheus says %g for the quantile %g, exact is %g: more than a bucket of scale "+
				"%d apart", got, q, want, scale)
		}
		p.t.Logf("quantile %g: %.6g, exact %.6g, a bucket is a factor of %.4f", q, got, want, factor)
	}
}
