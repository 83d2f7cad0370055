package prometheus

import (
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// A series longer than the encoder's buffer has the same content in text as in protobuf, line by
// line.
func TestSeries_LongInText(t *testing.T) {
	x := exporterWith(t, nil)
	c := newCycle(t)
	origin := c.Origin(span.Origin{Service: "web"})
	const names = 40
	for i := range names {
		name := strings.Repeat("x", 1+50*i)
		c.Add(0, c.Key(origin, span.Key{Service: "web", Operation: name, Resource: name}), 0, uint64(1+i)*1e8,
			0, 1)
	}
	publish(x, recent(c.Seal()))
	want := seriesOf(t, scraped(t, x)[durationsName])
	text, _ := ask(t, x, "text/plain", "")
	got := readText(t, text)[durationsName].GetMetric()
	if len(got) != names || len(want) != names {
		t.Fatalf("%d series in text, %d in protobuf, want %d", len(got), len(want), names)
	}
	for _, m := range got {
		a, b := m.GetHistogram(), want[labelsOf(m)].GetHistogram()
		if a.GetSampleCount() != 1 || a.GetSampleSum() != b.GetSampleSum() ||
			len(a.GetBucket()) != len(b.GetBucket()) {
			t.Fatalf("%s\nis %v, want %v", labelsOf(m), a, b)
		}
		for i, bucket := range b.GetBucket() {
			if a.GetBucket()[i].GetCumulativeCount() != bucket.GetCumulativeCount() {
				t.Fatalf("%s\nis %v, want %v", labelsOf(m), a, b)
			}
		}
	}
	open, _ := ask(t, x, "application/openmetrics-text;version=1.0.0", "")
	lines := strings.Split(strings.TrimSuffix(string(open), "# EOF\n"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" || line[0] == '#' })
	for _, line := range lines {
		if strings.Count(line, "{") != 1 || !strings.Contains(line, "} ") {
			t.Fatalf("a line of OpenMetrics is %s", line)
		}
	}
	// For each series: a total, buckets, a sum, a count, and for both metrics the time of creation.
	if each := 1 + len(testBounds) + 1 + 2 + 2; len(lines) != names*each {
		t.Errorf("OpenMetrics has %d lines for %d series, want %d for each", len(lines), names, each)
	}
}
