package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// names are the names of scraped metrics and labels in a dialect.
type names struct{ dialect, calls, durations, service string }

var (
	spanmetrics = names{
		"spanmetrics", "traces_span_metrics_calls_total", "traces_span_metrics_duration_seconds",
		"service_name",
	}
	tempo = names{"tempo", "traces_spanmetrics_calls_total", "traces_spanmetrics_latency", "service"}
)

// by returns the labels that identify a series in these tests.
func (n names) by() []string { return []string{n.service, "span_name", "span_kind", "status_code"} }

// name names a series by the values of these labels.
func (n names) name(labels map[string]string) string {
	values := []string{}
	for _, label := range n.by() {
		values = append(values, labels[label])
	}
	return strings.Join(values, separator)
}

// scrape is a way to configure Prometheus for histograms.
type scrape struct {
	name, config string
	native       bool
}

var scrapes = []scrape{
	{"classic, by text", "scrape_protocols: [OpenMetricsText1.0.0]", false},
	{
		"native and classic, by protobuf",
		"scrape_native_histograms: true, always_scrape_classic_histograms: true", true,
	},
}

// startScraping starts a Prometheus that scrapes a daemon's request metrics every second.
func (s scrape) startScraping(t *testing.T, address string, args ...string) *prometheus {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prometheus.yaml")
	config := fmt.Sprintf("global: {scrape_interval: 1s, %s}\nscrape_configs:\n"+
		"- {job_name: requests, metrics_path: /metrics/spans, static_configs: [{targets: [%q]}]}\n", s.config, address)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return startConfigured(t, file, args...)
}

// TestScraped_Spans lets a real Prometheus scrape a daemon and then its successor at the same address.
// Prometheus must have every span of both in its bucket, with both kinds of histograms and in both
// dialects. increase over both lifetimes must return all spans, since the restart is an ordinary
// counter reset.
func TestScraped_Spans(t *testing.T) {
	for _, n := range []names{spanmetrics, tempo} {
		for _, s := range scrapes {
			t.Run(n.dialect+", "+s.name, func(t *testing.T) {
				address := freeAddress(t)
				p := s.startScraping(t, address, "--enable-feature=created-timestamp-zero-ingestion")
				r := rand.New(rand.NewPCG(33, 1))
				const daemons, spans = 2, 3000
				for range daemons {
					d := startDaemonAt(t, address, "node-1", 3, "--prometheus", "--prometheus-dialect",
						n.dialect)
					p.scrapes(t, d, n, s.native, r, spans)
					d.stop()
				}
				p.mustIncrease(n, daemons*spans)
			})
		}
	}
}

// scrapes publishes spans to a daemon in rounds and compares the data in Prometheus with the oracle.
func (p *prometheus) scrapes(t *testing.T, d *daemon, n names, native bool, r *rand.Rand, spans int) {
	const rounds = 3 // so that totals cover several intervals
	o, exact := newOracle(t), map[string][]float64{}
	for range rounds {
		round := []loadedSpan{}
		for range spans / rounds {
			s := loadedSpan{r.IntN(d.origins()), &shapes[r.IntN(len(shapes))], 0}
			s.duration = s.shape.duration(r)
			round = append(round, s)
			name := n.name(map[string]string{
				n.service: d.origin(s.origin).Service, "span_name": s.shape.name, "span_kind": s.shape.kind,
				"status_code": s.shape.status(),
			})
			o.count(t, name, s.duration)
			exact[name] = append(exact[name], cut(s.duration).Seconds())
		}
		if err := d.publish(round); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	d.hands(t)
	eventually.True(t, "the daemon has counted every span into its totals",
		func() bool { return d.accounting().Flushed == uint64(spans) })
	d.mustBalance(uint64(spans))
	p.mustReach("sum("+n.calls+")", float64(spans))
	p.mustCount(n, exact)
	if native {
		p.mustHaveNative(n, o.counted(t))
	} else if all := p.ask(n.durations); len(all) != 0 {
		t.Errorf("a scrape by text has %d native histograms", len(all))
	}
}

// mustReach waits until the result of a query equals number.
func (p *prometheus) mustReach(promql string, number float64) {
	p.t.Helper()
	var answer []sample
	defer func() {
		if p.t.Failed() {
			p.t.Logf("the last answer to %s was %v; %s", promql, answer, p.targets())
		}
	}()
	eventually.True(p.t, fmt.Sprintf("Prometheus says %g to %s", number, promql), func() bool {
		answer = p.ask(promql)
		return len(answer) == 1 && answer[0].value == number
	})
}

// targets returns the state of Prometheus' scrape targets.
func (p *prometheus) targets() (said string) {
	p.t.Helper()
	var answer struct {
		ActiveTargets []struct{ ScrapeURL, Health, LastError string }
	}
	p.get("targets", nil, &answer)
	return fmt.Sprintf("it scrapes %+v", answer.ActiveTargets)
}

// mustCount compares calls and classic buckets with the exact durations of each series.
func (p *prometheus) mustCount(n names, exact map[string][]float64) {
	p.t.Helper()
	by := strings.Join(n.by(), ", ")
	calls := p.ask(fmt.Sprintf("sum by (%s) (%s)", by, n.calls))
	for _, s := range calls {
		if name := n.name(s.labels); s.value != float64(len(exact[name])) {
			p.t.Errorf("%g calls of %s, want %d", s.value, name, len(exact[name]))
		}
	}
	if len(calls) != len(exact) {
		p.t.Errorf("%d series of calls, want %d", len(calls), len(exact))
	}
	buckets := p.ask(fmt.Sprintf("sum by (%s, le) (%s_bucket)", by, n.durations))
	for _, s := range buckets {
		name, bound := n.name(s.labels), p.number(s.labels["le"])
		want := len(exact[name])
		if !math.IsInf(bound, 1) {
			want = 0
			for _, seconds := range exact[name] {
				if seconds <= bound {
					want++
				}
			}
		}
		if s.value != float64(want) {
			p.t.Errorf("%g of %s within %g seconds, want %d", s.value, name, bound, want)
		}
	}
	const least = 10 // at least this number of buckets
	if len(buckets) < least*len(exact) {
		p.t.Errorf("%d classic buckets of %d series", len(buckets), len(exact))
	}
	for _, s := range p.ask(fmt.Sprintf("sum by (%s) (%s_sum)", by, n.durations)) {
		want := 0.0
		for _, seconds := range exact[n.name(s.labels)] {
			want += seconds
		}
		if math.Abs(s.value-want) > want/512 {
			p.t.Errorf("%s took %g seconds in all, want %g", n.name(s.labels), s.value, want)
		}
	}
	p.t.Logf("%d series, %d classic buckets", len(calls), len(buckets))
}

// mustHaveNative compares native histograms with the oracle.
func (p *prometheus) mustHaveNative(n names, want map[string]*distribution) {
	p.t.Helper()
	has := p.ask(fmt.Sprintf("sum by (%s) (%s)", strings.Join(n.by(), ", "), n.durations))
	for _, s := range has {
		name := n.name(s.labels)
		switch {
		case s.histogram == nil || want[name] == nil:
			p.t.Errorf("%s: a native histogram %v, the oracle has %v", name, s.histogram, want[name])
		case s.histogram.differs(want[name]) != "":
			p.t.Errorf("%s: Prometheus and the oracle have %s", name, s.histogram.differs(want[name]))
		case s.histogram.scale < min(want[name].fitting(mostBuckets), oracleScale):
			p.t.Errorf("%s: scale %d, though %d fits", name, s.histogram.scale,
				want[name].fitting(mostBuckets))
		}
	}
	if len(has) != len(want) {
		p.t.Errorf("%d native histograms, want %d", len(has), len(want))
	}
}

// mustIncrease checks that the increase over all samples, including resets, is the number of spans, and
// that the increase function returns it, within the error of its extrapolation.
func (p *prometheus) mustIncrease(n names, spans int) {
	p.t.Helper()
	total := 0.0
	for _, values := range p.matrix(n.calls + "[1h]") {
		for i, value := range values {
			if i > 0 && value >= values[i-1] {
				total += value - values[i-1]
			} else {
				total += value
			}
		}
	}
	if total != float64(spans) {
		p.t.Errorf("Prometheus has seen %g calls, want %d", total, spans)
	}
	increase := p.ask(fmt.Sprintf("sum(increase(%s[1h]))", n.calls))[0].value
	if most := 1.2 * total; increase > most || increase < total/1.2 {
		p.t.Errorf("increase is %g of %g calls", increase, total)
	}
	p.t.Logf("%g calls of both daemons, increase says %.0f", total, increase)
}
