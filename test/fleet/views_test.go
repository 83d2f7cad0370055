package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// view is a ready-made view with its Prometheus queries in dialect-independent terms, their source, and
// the command of docs/dashboards.md that makes the view work.
type view struct {
	View, From, Section string
	Command             int // position of the command in that section, from 1
	Asks                []ask
}

// ask is one query: the rate of a counter, an error ratio, a quantile or mean of a histogram, or the
// series of an info metric.
type ask struct {
	Kind     string
	Quantile float64
	Of       string // metric name, without the suffix for histograms
	By       []string
	Where    map[string][]string // accepted label values
}

const (
	failed     = `status_code="STATUS_CODE_ERROR"`
	firstTimes = 1 // publications before the views are queried, so that each counter exists
	laterTimes = 5 // publications while the views are queried
)

// promql returns the query for rates over the given number of seconds.
func (a *ask) promql(window int) string {
	matchers := []string{}
	for _, name := range slices.Sorted(maps.Keys(a.Where)) {
		matchers = append(matchers, fmt.Sprintf("%s=~%q", name, strings.Join(a.Where[name], "|")))
	}
	sum := func(suffix string, more ...string) string {
		by := slices.Clone(a.By)
		if suffix == "_bucket" {
			by = append(by, "le")
		}
		return fmt.Sprintf("sum by (%s) (rate(%s%s{%s}[%ds]))", strings.Join(by, ", "), a.Of, suffix,
			strings.Join(append(more, matchers...), ", "), window)
	}
	switch a.Kind {
	case "rate":
		return sum("")
	case "ratio":
		return sum("", failed) + " / " + sum("")
	case "quantile":
		return fmt.Sprintf("histogram_quantile(%g, %s)", a.Quantile, sum("_bucket"))
	case "mean":
		return sum("_sum") + " / " + sum("_count")
	case "info":
		return fmt.Sprintf("group by (%s) (%s{%s})", strings.Join(a.By, ", "), a.Of,
			strings.Join(matchers, ", "))
	}
	panic("BUG: a kind of query that nobody knows: " + a.Kind)
}

// want returns the expected result by group. second is the rate of a span that the traffic contains
// once.
func (a *ask) want(d *daemon, second float64) map[string]float64 {
	want, unit := map[string]float64{}, 1.0
	if strings.Contains(a.Of, "milliseconds") {
		unit = 1000
	}
	for name, c := range count(d, a.By, a.Where) {
		switch a.Kind {
		case "rate":
			want[name] = c.spans * second
		case "ratio":
			if c.errors > 0 {
				want[name] = c.errors / c.spans
			}
		case "quantile":
			want[name] = c.quantile(a.Quantile) * unit
		case "mean":
			want[name] = c.seconds / c.spans * unit
		case "info":
			want[name] = 1
		}
	}
	return want
}

// TestScraped_OrSentViews checks that each view of testdata/views.json shows the published spans if the
// daemon has exactly the flags that docs/dashboards.md names for the view.
func TestScraped_OrSentViews(t *testing.T) {
	var views []view
	text, err := os.ReadFile("testdata/views.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &views); err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		t.Run(v.View, func(t *testing.T) {
			s := showTraffic(t, shownFlags(t, v.Section, v.Command)...)
			for _, a := range v.Asks {
				query := a.promql(s.window)
				got := map[string]float64{}
				for _, sample := range s.prometheus.askAt(query, s.at) {
					got[group(sample.labels, a.By)] = sample.value
				}
				mustAgree(t, query, got, a.want(s.daemon, s.second))
			}
			t.Logf("%d queries, of %s", len(v.Asks), v.From)
		})
	}
}

// shown is traffic stored in a Prometheus, with the evaluation time and the window of the views. The
// window contains all traffic except the first publications.
type shown struct {
	daemon     *daemon
	prometheus *prometheus
	at         time.Time
	window     int     // in seconds
	second     float64 // rate of a span that the traffic contains once
}

// showTraffic publishes the traffic to a daemon with the given flags, which pushes to a Prometheus or
// is scraped by it.
func showTraffic(t *testing.T, flags ...string) *shown {
	t.Helper()
	s, calls := &shown{}, spanmetrics.calls
	if at := slices.Index(flags, "--otlp-metrics-endpoint"); at >= 0 {
		s.prometheus = startPrometheus(t)
		flags[at+1] = s.prometheus.url + "/api/v1/otlp/v1/metrics"
		s.daemon = startDaemon(t, "node-1", 2, flags...)
	} else {
		s.daemon = startDaemon(t, "node-1", 2, flags...)
		s.prometheus = scrapes[0].startScraping(t, s.daemon.http)
		if slices.Contains(flags, tempo.dialect) {
			calls = tempo.calls
		}
	}
	spans := publishRounds(t, s.daemon, firstTimes)
	s.prometheus.mustReach("sum("+calls+")", float64(spans))
	begun := time.Now()
	// the window begins within a second and must have a sample then
	s.prometheus.mustPass(calls, begun.Add(time.Second))
	for range laterTimes {
		spans += publishRounds(t, s.daemon, 1)
		time.Sleep(time.Second)
	}
	s.prometheus.mustReach("sum("+calls+")", float64(spans))
	eventually.True(t, "a second has begun", func() bool { // queries are asked by whole seconds
		s.at = time.Now().Truncate(time.Second)
		return s.at.Sub(begun) > laterTimes*time.Second && s.prometheus.has(calls, s.at, spans)
	})
	s.prometheus.mustPass(calls, s.at) // all samples of the window have arrived
	s.window = int(s.at.Sub(begun) / time.Second)
	increase := s.prometheus.askAt(fmt.Sprintf("sum(increase(%s[%ds]))", calls, s.window), s.at)
	published := float64(spans) * laterTimes / (firstTimes + laterTimes)
	if len(increase) != 1 || increase[0].value < published || increase[0].value > 2*published {
		t.Fatalf("the increase of %g spans is %+v", published, increase)
	}
	s.second = increase[0].value / published * laterTimes / float64(s.window)
	return s
}

// mustPass waits until each series has a sample after the given time.
func (p *prometheus) mustPass(calls string, at time.Time) {
	p.t.Helper()
	eventually.True(p.t, "each series has a later sample", func() bool {
		answer := p.ask(fmt.Sprintf("min(timestamp(%s))", calls))
		return len(answer) == 1 && answer[0].value > float64(at.UnixMilli())/1000
	})
}

// has reports whether the given number of spans was stored at a time.
func (p *prometheus) has(calls string, at time.Time, spans int) bool {
	p.t.Helper()
	answer := p.askAt("sum("+calls+")", at)
	return len(answer) == 1 && answer[0].value == float64(spans)
}

// askAt returns the result of a query at the given time.
func (p *prometheus) askAt(promql string, at time.Time) []sample {
	p.t.Helper()
	return p.vector(url.Values{"query": {promql}, "time": {fmt.Sprint(at.Unix())}})
}

// mustAgree compares a result with the model: the groups must be equal, and the values may differ by
// the truncation of durations.
func mustAgree(t *testing.T, query string, got, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if g, is := got[name]; !is || math.Abs(g-value) > value/512 {
			t.Errorf("%s: %q is %v, %v; want %v", query, name, g, is, value)
		}
	}
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %v, want %v", query, got, want)
	}
}

// shownFlags returns the flags of a command in docs/dashboards.md except those of receivers.
func shownFlags(t *testing.T, section string, command int) (flags []string) {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^    bin/spanstatsd run .*$`).FindAllString(
		strings.ReplaceAll(sectionOf(t, section), "\\\n", " "), -1)
	if len(lines) < command {
		t.Fatalf("docs/dashboards.md has %d commands in %q, not %d", len(lines), section, command)
	}
	flags = strings.Fields(lines[command-1])[2:]
	if at := slices.Index(flags, "--otlp-addr"); at >= 0 {
		flags = slices.Delete(flags, at, at+2)
	}
	return flags
}

// sectionOf returns a section of docs/dashboards.md.
func sectionOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/dashboards.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, is := strings.Cut(string(text), "\n## "+name+"\n")
	if !is {
		t.Fatalf("docs/dashboards.md has no section %q", name)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}
