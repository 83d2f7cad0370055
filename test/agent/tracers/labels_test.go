package tracers

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// With --apm-labels=tracer, the daemon turns a tracer's traces into the same groups as the tracer
// itself. One run provides both: the tracer computes its statistics, which the agent without a daemon
// receives, and the daemon receives the same traces as if the tracer had not. In a second run the
// tracer does not compute statistics; everything except times must be equal.

// additionalTags are the additional tags configured in tracers and daemon.
var additionalTags = []string{"tier", "region"}

// labelVariables returns the environment variables that configure the labels, in each language. Format
// v1.0 has numbers only for five span kinds, so other kinds are missing; Java's format also lacks the
// measured flag.
func labelVariables(t testing.TB, s setting) []string {
	text, err := os.ReadFile("apps/odd.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
		return s.protocol == "1.0" &&
			(strings.HasPrefix(line, "span.kind=CLIENT\t") || strings.HasPrefix(line, "span.kind=batch\t") ||
				s.renames && strings.Contains(line, "_dd.measured"))
	})
	odd := filepath.Join(t.TempDir(), "odd.tsv")
	if err := os.WriteFile(odd, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{
		"DD_TRACE_STATS_ADDITIONAL_TAGS=" + strings.Join(additionalTags, ","),
		"DD_TRACE_RESOURCE_RENAMING_ENABLED=" + fmt.Sprint(s.renames), "SHOP_ODD=" + odd,
	}
}

// compareLabels runs an application twice and compares its tracer's groups with those of the daemon. It
// compares bins if the tracer's sketches use the daemon's mapping.
func compareLabels(t *testing.T, s setting, sameBins bool, run func(*pair, setting)) {
	t.Helper()
	s.labels, s.computes = true, true
	p := startPair(t, s)
	run(p, s)
	on := p.groupsOfTracer(t, sameBins)

	s.computes = false
	p = startPair(t, s)
	run(p, s)
	p.end(t)
	off, _ := groupsOf(t, &p.through.Received)
	for _, all := range []map[string]group{on, off} {
		for key, g := range all {
			all[key] = group{hits: g.hits, errors: g.errors, topLevel: g.topLevel}
		}
	}
	if !maps.Equal(on, off) {
		t.Errorf("counted by the daemon where the tracer computes nothing, and by the tracer\n%s",
			difference(off, on))
	}
}

// end stops everything and returns the daemon's accounting.
func (p *pair) end(t *testing.T) status.Accounting {
	t.Helper()
	p.fork.wait()
	accounting, counters := p.daemon.stop(t)
	p.through.Stop()
	p.direct.Stop()
	t.Logf("the tracer's requests: %s; the daemon's: %v", p.fork, counters)
	return accounting
}

// groupsOfTracer stops everything and returns the tracer's groups, which must equal the daemon's.
func (p *pair) groupsOfTracer(t *testing.T, sameBins bool) (groups map[string]group) {
	t.Helper()
	accounting := p.end(t)
	ours, spans := groupsOf(t, &p.through.Received)
	theirs, counted := groupsOf(t, &p.direct.Received)
	if _, left := groupsOf(t, &p.through.Computed); left != 0 {
		t.Errorf("%v spans were left to the agent", left)
	}
	if !sameBins {
		for _, all := range []map[string]group{ours, theirs} {
			for key, g := range all {
				g.fine, g.failed = 0, 0
				all[key] = g
			}
		}
	}
	if spans != counted || counted == 0 || !maps.EqualFunc(ours, theirs, group.equals) {
		t.Errorf("%v spans counted by the daemon, %v by the tracer\n%s", spans, counted,
			difference(ours, theirs))
	}
	if !accounting.Balanced || float64(accounting.Flushed) != spans {
		t.Errorf("the accounting: %+v", accounting)
	}
	t.Logf("%v spans in %d groups", spans, len(ours))
	return theirs
}

// TestGo_Labels compares with dd-trace-go.
func TestGo_Labels(t *testing.T) {
	for _, s := range []setting{{protocol: "0.4", labels: true}, {protocol: "1.0", labels: true}} {
		t.Run(s.String(), func(t *testing.T) {
			for _, variable := range append(labelVariables(t, s),
				"DD_TRACE_AGENT_PROTOCOL_VERSION="+s.protocol, "DD_TRACE_SAMPLE_RATE=1",
				"DD_TRACE_RATE_LIMIT=100000",
				"DD_INSTRUMENTATION_TELEMETRY_ENABLED=false", "DD_REMOTE_CONFIGURATION_ENABLED=false",
				"DD_TRACE_EXPERIMENTAL_FEATURES_ENABLED=true") {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			compareLabels(t, s, true, func(p *pair, s setting) { runGoShop(t, p, s) })
		})
	}
}

// oddSpans creates a span per line of a file, with tags as key=value and numbers as key#=value.
func oddSpans(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := tracer.StartSpan("odd.all")
	for row, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		span := all.StartChild("odd", tracer.ResourceName(fmt.Sprint("row ", row)))
		for _, tag := range strings.Split(line, "\t") {
			key, value, _ := strings.Cut(tag, "=")
			var number float64
			switch {
			case key == "service":
				key = "service.name"
			case key == "type":
				key = "span.type"
			case strings.HasSuffix(key, "#"):
				if _, err := fmt.Sscan(value, &number); err != nil {
					t.Fatal(err)
				}
				span.SetTag(strings.TrimSuffix(key, "#"), number)
				continue
			}
			span.SetTag(key, value)
		}
		span.Finish()
	}
	all.Finish()
}
