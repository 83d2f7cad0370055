package prometheus

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// one returns a cycle with the given number of spans for each name.
func one(t testing.TB, x *Exporter, after time.Duration, names ...string) (spans uint64,
	encoded export.Encoded,
) {
	t.Helper()
	c := newCycle(t)
	origin := c.Origin(span.Origin{Service: "web"})
	for _, name := range names {
		key := c.Key(origin, span.Key{Service: "web", Operation: name, Resource: "r"})
		c.Add(0, key, 0, 1000, 0, 1)
	}
	sealed := recent(c.Seal())
	return publish(x, later(sealed, after))
}

// names returns the names of the scraped spans, with their calls.
func names(t testing.TB, x *Exporter) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for _, m := range scraped(t, x)[callsName].GetMetric() {
		name := ""
		for _, pair := range m.GetLabel() {
			if pair.GetName() == "span_name" || pair.GetName() == "otel_metric_overflow" {
				name += pair.GetValue()
			}
		}
		got[name] += m.GetCounter().GetValue()
	}
	return got
}

// A series without new spans ends after an hour, even if no cycle has any span. If it is counted
// again, it has another start.
func TestSeries_IdleEnds(t *testing.T) {
	x := exporterWith(t, nil)
	one(t, x, -time.Hour-time.Minute, "old", "kept")
	one(t, x, -2*time.Minute, "kept", "new")
	if got := names(t, x); !maps.Equal(got, map[string]float64{"kept": 2, "new": 1}) {
		t.Errorf("%v", got)
	}
	before := starts(t, x)
	one(t, x, 0, "old")
	if got := names(t, x); got["old"] != 1 {
		t.Errorf("what begins anew goes on: %v", got)
	}
	after := starts(t, x)
	if after["kept"] != before["kept"] || after["old"] <= after["kept"] {
		t.Errorf("series began at %v, and then at %v", before, after)
	}
	idle := exporterWith(t, nil)
	one(t, idle, -2*time.Hour, "old")
	if body, _ := ask(t, idle, "text/plain", ""); len(body) != 0 {
		t.Errorf("nothing is counted any more, and there is %s", body)
	}
}

// starts returns the start of each series, in seconds since the Unix epoch.
func starts(t testing.TB, x *Exporter) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for _, m := range scraped(t, x)[callsName].GetMetric() {
		got[m.GetLabel()[1].GetValue()] = m.GetCounter().GetCreatedTimestamp().GetSeconds()
	}
	return got
}

// Spans beyond the limits are in one series of their service, and the counts contain their number.
func TestSeries_BeyondLimits(t *testing.T) {
	x := exporterWith(t, nil)
	limits := roomForAll
	limits.Series = 2
	x.LimitTotals(limits)
	spans, encoded := one(t, x, 0, "a", "b", "c", "d")
	if want := (export.TotalsStats{Series: 3, Overflowed: 2}); spans != 4 || encoded.Totals != want {
		t.Errorf("%d spans, %+v", spans, encoded.Totals)
	}
	got := slices.Sorted(maps.Keys(seriesOf(t, scraped(t, x)[callsName])))
	if want := "service_name=web otel_metric_overflow=true"; len(got) != 3 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// No tag makes a scrape invalid: names with a meaning in Prometheus, equal labels, and empty names.
func TestTags_NoneInvalidatesScrape(t *testing.T) {
	x := exporterWith(t, nil)
	c := newCycle(t)
	origin := c.Origin(span.Origin{Service: "web"})
	for i, tags := range [][]string{
		{
			"le:1", "quantile:2", "__name__:x", "a.b:1", "a_b:2", "service.name:other", "status.code:y",
			"0:z",
			"\xff:\xff", "esc:\"\\\n",
		},
		{"a_b:1", "a.c:1"},
		{"a.b:1", "a_c:1"}, // the same label
	} {
		k := span.Key{Service: "web", Operation: "op", Resource: fmt.Sprint(i), AdditionalTags: tags}
		c.Add(0, c.Key(origin, k), 0, 1000, 0, 1)
	}
	publish(x, recent(c.Seal()))
	want := map[string]float64{
		"service_name=web span_name=op span_kind=SPAN_KIND_UNSPECIFIED a_b=1 a_c=1 status_code=STATUS_CODE_UNSET": 2,
		"service_name=web span_name=op span_kind=SPAN_KIND_UNSPECIFIED a_b=1 esc=\"\\\n key_=\uFFFD key_0=z key__name__=x key_le=1 " +
			"key_quantile=2 status_code=STATUS_CODE_UNSET": 1,
	}
	for how, all := range map[string]map[string]*dto.MetricFamily{
		"protobuf": scraped(t, x),
		"text":     textOf(t, x),
	} {
		got := map[string]float64{}
		for labels, m := range seriesOf(t, all[callsName]) {
			got[labels] = m.GetCounter().GetValue()
		}
		if !maps.Equal(got, want) {
			t.Errorf("in %s %v, want %v", how, got, want)
		}
	}
}

func textOf(t testing.TB, x *Exporter) map[string]*dto.MetricFamily {
	t.Helper()
	body, _ := ask(t, x, "", "")
	return readText(t, body)
}

// The kinds of histograms depend on the scraper and the configuration.
func TestHistograms_Kinds(t *testing.T) {
	for _, c := range []struct{ classic, native bool }{{true, true}, {true, false}, {false, true}} {
		x := exporterWith(t, func(to *Config) {
			if to.NoNative = !c.native; !c.classic {
				to.Bounds = nil
			}
		})
		one(t, x, 0, "op")
		h := scraped(t, x)[durationsName].GetMetric()[0].GetHistogram()
		if got := len(h.GetBucket()) > 0; got != c.classic {
			t.Errorf("%+v: classic %v", c, got)
		}
		if got := len(h.GetPositiveSpan()) > 0; got != c.native {
			t.Errorf("%+v: native %v", c, got)
		}
		body, _ := ask(t, x, "text/plain", "")
		if got := strings.Count(string(body), "_bucket{"); c.classic && got != len(testBounds)+1 ||
			!c.classic && got != 1 {
			t.Errorf("%+v: %d buckets in text: %s", c, got, body)
		}
		if want := c.classic; (len(x.config.Bounds) > 0) != want {
			t.Errorf("%+v: bounds %v", c, x.config.Bounds)
		}
	}
}

func TestDialect_TempoNames(t *testing.T) {
	x := exporterWith(t, func(c *Config) { c.Dialect = points.Tempo })
	one(t, x, 0, "op")
	all := scraped(t, x)
	m := all["traces_spanmetrics_calls_total"].GetMetric()
	if want := "service=web span_name=op span_kind=SPAN_KIND_UNSPECIFIED status_code=STATUS_CODE_UNSET"; len(m) != 1 ||
		labelsOf(m[0]) != want || all["traces_spanmetrics_latency"] == nil {
		t.Errorf("%v", all)
	}
}

// Series without new spans share their records with the previous snapshot.
func TestSeries_IdleShareRecords(t *testing.T) {
	x := exporterWith(t, nil)
	one(t, x, -20*time.Second, "a", "b")
	first := x.snapshot.Load().series
	one(t, x, 0, "b")
	second := x.snapshot.Load().series
	if first[0] != second[0] || first[1] == second[1] || first[1].calls != 1 || second[1].calls != 2 {
		t.Errorf("%+v, then %+v", first[1], second[1])
	}
}
