package recording_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/recording"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
)

// begun is the start of an interval.
var begun = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// request returns a request in JSON with a span of the service shop for each tenant, numbered from first.
func request(end time.Time, first, tenants int) string {
	var spans []string
	for i := range tenants {
		spans = append(spans, fmt.Sprintf(`{"traceId":"%032x","spanId":"%016x","name":"checkout","kind":2,`+
			`"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[{"key":"tenant.id","value":{"stringValue":"t%d"}}]}`,
			first+i+1, first+i+1, end.UnixNano()-1000, end.UnixNano(), first+i))
	}
	return `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},` +
		`"scopeSpans":[{"spans":[` + strings.Join(spans, ",") + `]}]}]}`
}

// config returns a configuration with tenant.id as a dimension with a budget of 200 values.
func config() recording.Config {
	c := recording.Config{
		Labels:      otel.Labels{Attributes: []string{"tenant.id"}},
		MaxResource: 5000, Interval: 10 * time.Second, Registry: registry.DefaultConfig(),
	}
	c.Registry.LimitTag("tenant.id", 200)
	return c
}

func read(t *testing.T, lines ...string) recording.Result {
	t.Helper()
	result, err := recording.Read(config(), strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func isAbout(got, want int) bool { return math.Abs(float64(got-want)) <= 0.07*float64(want) }

// TestRead_HighestInterval checks that the result has the highest number of values of any interval, and not
// the sum of all.
func TestRead_HighestInterval(t *testing.T) {
	var lines []string
	for interval, tenants := range []int{400, 3000, 700} {
		end := begun.Add(time.Duration(interval) * 10 * time.Second)
		lines = append(lines, request(end, 10_000*interval, tenants/2), "",
			request(end.Add(9*time.Second), 10_000*interval+tenants/2, tenants/2))
	}
	result := read(t, lines...)
	if result.Spans != 4100 || result.Overflow == nil {
		t.Fatalf("the result is %+v", result)
	}
	labels := result.Overflow.Labels
	if len(labels) != 1 || labels[0].Service != "shop" || labels[0].Label != "tag:tenant.id" || !isAbout(labels[0].Wanted, 3000) {
		t.Errorf("the labels are %+v", labels)
	}
	if !isAbout(result.Overflow.Keys, 3000) {
		t.Errorf("%d label sets", result.Overflow.Keys)
	}
}

// TestRead_WithinBudgets checks that many values over time are no overflow if each interval has few.
func TestRead_WithinBudgets(t *testing.T) {
	var lines []string
	for interval := range 100 {
		lines = append(lines, request(begun.Add(time.Duration(interval)*time.Minute), 60*interval, 60))
	}
	if result := read(t, lines...); result.Spans != 6000 || result.Overflow != nil {
		t.Errorf("the result is %+v", result)
	}
}

// TestRead_NamesInvalidLine checks the errors of files that are not recordings.
func TestRead_NamesInvalidLine(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"text":      {request(begun, 0, 1) + "\nhello", "line 2: read spans in JSON at byte 0"},
		"truncated": {request(begun, 0, 1)[:100], "line 1: read spans in JSON at byte 100"},
		"long":      {"\n" + strings.Repeat(" ", 65<<20), "line 2 is longer than 64 MiB"},
	} {
		_, err := recording.Read(config(), strings.NewReader(test.file))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if result := read(t, `{"resourceMetrics":[]}`); result.Spans != 0 {
		t.Errorf("metrics have %d spans", result.Spans)
	}
}

// TestRead_ClockAhead checks that a span that ends in the future does not put the rest of the recording into one interval.
func TestRead_ClockAhead(t *testing.T) {
	ahead := []string{request(begun.Add(1000*time.Hour), 0, 1)}
	for interval := range 10 {
		ahead = append(ahead, request(begun.Add(time.Duration(interval)*time.Minute), 1000*(interval+1), 60))
	}
	if result := read(t, ahead...); result.Spans != 601 || result.Overflow != nil {
		t.Errorf("the result is %+v", result)
	}
}

// TestRead_CountedByClients checks that spans of clients that count themselves are left out.
func TestRead_CountedByClients(t *testing.T) {
	line := strings.Replace(request(begun, 0, 5), `"attributes":[`,
		`"attributes":[{"key":"_dd.stats_computed","value":{"stringValue":"true"}},`, 1)
	if result := read(t, line); result.Spans != 0 || result.CountedByClients != 5 {
		t.Errorf("the result is %+v", result)
	}
}
