package prometheus

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
	"google.golang.org/protobuf/encoding/protodelim"
)

const asProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

var testBounds = []float64{.01, .1, 1, 10}

var roomForAll = totals.Limits{
	Series:        1000,
	Bytes:         1 << 20,
	Idle:          time.Hour,
	Buckets:       sketch.DefaultMaxBuckets,
	Resources:     2,
	ResourceBytes: 1 << 10,
	Classic:       len(testBounds) + 1,
}

// exporterWith returns an exporter with all dimensions and the bounds of the tests, after the given
// change.
func exporterWith(t testing.TB, change func(*Config)) *Exporter {
	t.Helper()
	dimensions, err := points.ParseDimensions(points.AllDimensions)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{URL: Path, Dimensions: dimensions, Bounds: testBounds}
	if change != nil {
		change(&c)
	}
	x := New(c)
	x.LimitTotals(roomForAll)
	return x
}

// newCycle counts durations so that all histograms of the tests are exact.
func newCycle(t testing.TB) *testcycle.Cycle {
	t.Helper()
	grid, err := sketch.GridWith(testBounds)
	if err != nil {
		t.Fatal(err)
	}
	return &testcycle.Cycle{Grid: grid}
}

// published numbers the cycles of publish.
var published atomic.Uint64

// publish publishes a cycle, and returns the number of spans in series.
func publish(x *Exporter, sealed *aggregate.Sealed) (spans uint64, encoded export.Encoded) {
	var m export.Merger
	defer m.Forget()
	number := published.Add(1)
	encoded = x.Publish(&export.Cycle{
		Sealed: sealed, Rows: m.Merge(sealed), Number: number, FirstUndelivered: number,
	})
	return sealed.Spans() - encoded.Unencodable, encoded
}

// later returns a sealed cycle, moved by the given time.
func later(sealed *aggregate.Sealed, by time.Duration) *aggregate.Sealed {
	sealed.Start, sealed.End = sealed.Start.Add(by), sealed.End.Add(by)
	return sealed
}

// recent returns a sealed cycle that has just ended, so that scrapes contain it.
func recent(sealed *aggregate.Sealed) *aggregate.Sealed { return later(sealed, time.Since(sealed.End)) }

// ask scrapes once, and returns the complete response.
func ask(t testing.TB, x http.Handler, accept, encoding string) (body []byte, header http.Header) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("answered %d: %s", w.Code, w.Body)
	}
	return w.Body.Bytes(), w.Header()
}

// families decodes a protobuf response.
func families(t testing.TB, body []byte) map[string]*dto.MetricFamily {
	t.Helper()
	all := map[string]*dto.MetricFamily{}
	for from := bufio.NewReader(bytes.NewReader(body)); ; {
		f := &dto.MetricFamily{}
		switch err := protodelim.UnmarshalFrom(from, f); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("read an answer: %v", err)
		case all[f.GetName()] != nil:
			t.Fatalf("%s comes twice", f.GetName())
		}
		all[f.GetName()] = f
	}
}

// scraped returns the families of a protobuf scrape.
func scraped(t testing.TB, x http.Handler) map[string]*dto.MetricFamily {
	t.Helper()
	body, _ := ask(t, x, asProtobuf, "")
	return families(t, body)
}

// readText decodes a text response with the library.
func readText(t testing.TB, body []byte) map[string]*dto.MetricFamily {
	t.Helper()
	all := map[string]*dto.MetricFamily{}
	for d := expfmt.NewDecoder(bytes.NewReader(body), expfmt.NewFormat(expfmt.TypeTextPlain)); ; {
		f := &dto.MetricFamily{}
		switch err := d.Decode(f); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("read a text: %v", err)
		}
		all[f.GetName()] = f
	}
}

// seriesOf returns the metrics of a family by their labels, in the order of the response.
func seriesOf(t testing.TB, f *dto.MetricFamily) map[string]*dto.Metric {
	t.Helper()
	all := map[string]*dto.Metric{}
	for _, m := range f.GetMetric() {
		name := labelsOf(m)
		if all[name] != nil {
			t.Fatalf("%s has %s twice", f.GetName(), name)
		}
		all[name] = m
	}
	return all
}

func labelsOf(m *dto.Metric) string {
	var words []string
	for _, pair := range m.GetLabel() {
		words = append(words, pair.GetName()+"="+pair.GetValue())
	}
	return strings.Join(words, " ")
}

const (
	callsName     = "traces_span_metrics_calls_total"
	durationsName = "traces_span_metrics_duration_seconds"
)
