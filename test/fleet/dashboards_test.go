package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// ours is this repository's request dashboard.
const ours = "../../deploy/grafana/requests.json"

// published describes the queries of a published dashboard for span metrics: the metrics, the grouping
// labels and the selected spans, in dialect-independent terms.
type published struct {
	Dashboard, Dialect string
	Asks               []struct {
		Metric string // "calls", or a suffix of the histogram
		By     []string
		Where  string
	}
	Lacks string // queried data that the daemon does not have
}

// TestScraped_Dashboards checks that common dashboards show data in their dialect: this repository's
// dashboard with native histograms and with classic ones, the queries of published dashboards
// (testdata/published.json), and each dashboard in the directory DASHBOARDS, unchanged except for its
// variables.
func TestScraped_Dashboards(t *testing.T) {
	var all []published
	text, err := os.ReadFile("testdata/published.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, n := range []names{spanmetrics, tempo} {
		for _, s := range scrapes {
			t.Run(n.dialect+", "+s.name, func(t *testing.T) {
				d := startDaemon(t, "node-1", 3, "--prometheus", "--prometheus-dialect", n.dialect)
				p := s.startScraping(t, d.http)
				eventually.True(t, "Prometheus has a rate", func() bool {
					publishRequests(t, d)
					return len(p.ask(fmt.Sprintf("sum by (status_code) (rate(%s[1m])) > 0", n.calls))) == 2
				})
				if n == spanmetrics {
					p.mustAnswerAll(ours, n)
				}
				for _, dashboard := range all {
					if dashboard.Dialect == n.dialect {
						p.mustAnswer(&dashboard, n)
					}
				}
				// fails only for a malformed pattern
				files, _ := filepath.Glob(filepath.Join(os.Getenv("DASHBOARDS"), "*.json"))
				for _, file := range files {
					p.mustAnswerAll(file, n)
				}
			})
		}
	}
}

// publishRequests publishes HTTP requests, some of which fail.
func publishRequests(t *testing.T, d *daemon) {
	t.Helper()
	batch := make([]client.Snapshot, 40)
	for i := range batch {
		key := cart
		key.HTTPStatus = 200
		if i%4 == 0 {
			key, batch[i].Error = orders, true
			key.HTTPStatus = 503
		}
		batch[i].Key, batch[i].TopLevel, batch[i].End = key, true, time.Now()
		batch[i].Key.Service = d.origin(0).Service
		batch[i].Duration = time.Duration(i+1) * time.Millisecond
	}
	if !d.clients[0].Publish(batch) {
		t.Fatalf("the client refused spans: %+v", d.clients[0].Stats())
	}
}

// mustAnswer checks that each query of a published dashboard returns data with each grouping label.
func (p *prometheus) mustAnswer(dashboard *published, n names) {
	p.t.Helper()
	for _, ask := range dashboard.Asks {
		metric := n.calls
		if ask.Metric != "calls" {
			metric = n.durations + ask.Metric
		}
		query := fmt.Sprintf("sum by (%s) (rate(%s{%s}[1m])) >= 0", strings.Join(ask.By, ", "), metric,
			ask.Where)
		answer := p.ask(query)
		for _, s := range answer {
			for _, label := range ask.By {
				if s.labels[label] == "" {
					p.t.Errorf("%s: %s has no %s", dashboard.Dashboard, metric, label)
				}
			}
		}
		if len(answer) == 0 {
			p.t.Errorf("%s: no answer to %s", dashboard.Dashboard, query)
		}
	}
}

// variables matches the variables in a dashboard's queries. Grafana's built-in variables are durations.
var variables = regexp.MustCompile(`\$\{?(\w+)(:\w+)?\}?`)

// asked returns a query as sent by Grafana with the option "All" selected. A label that must equal a
// variable is set to the service.
func asked(query, service string) string {
	query = regexp.MustCompile(`([^!=~])="(\$\{?\w+\}?)"`).ReplaceAllString(query, `$1=~"$2"`)
	return variables.ReplaceAllStringFunc(query, func(name string) string {
		switch strings.Trim(name, "${}") {
		case "__rate_interval", "__interval":
			return "1m"
		case "__range":
			return "5m"
		case "service", "service_name", "app":
			return service
		}
		return ".*"
	})
}

// mustAnswerAll checks that each query of a dashboard for metrics of a dialect returns data.
func (p *prometheus) mustAnswerAll(file string, n names) {
	p.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		p.t.Fatal(err)
	}
	answered := 0
	for _, query := range slices.Compact(slices.Sorted(slices.Values(queriesOf(dashboard)))) {
		if !strings.Contains(query, n.calls) && !strings.Contains(query, n.durations) {
			continue
		}
		if len(p.ask(asked(query, "shop-0"))) == 0 {
			p.t.Errorf("%s: no answer to %s", filepath.Base(file), query)
		} else {
			answered++
		}
	}
	p.t.Logf("%s: %d queries of %s are answered", filepath.Base(file), answered, n.dialect)
}

// queriesOf returns all queries of a dashboard in any version of Grafana's format.
func queriesOf(value any) (queries []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if text, is := inner.(string); is && name == "expr" {
				queries = append(queries, text)
			}
			queries = append(queries, queriesOf(inner)...)
		}
	case []any:
		for _, inner := range v {
			queries = append(queries, queriesOf(inner)...)
		}
	}
	return queries
}
