package deploy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// dashboardFile is a dashboard in deploy/grafana.
type dashboardFile struct {
	name, uid string
	rows      []string // row titles in order
	matcher   string   // label matcher that each query must contain
}

var dashboards = []dashboardFile{
	{
		"spanstatsd.json", "spanstatsd",
		[]string{"Is anything lost?", "What loses spans?", "What does it cost?", "What is the load?"},
		`instance=~"$instance"`,
	},
	{
		"requests.json", "spanstatsd-requests",
		[]string{
			"Services", "Routes", "Latency",
			"Responses",
		},
		"", // panels without grouping show all spans
	},
	{"slo.json", "spanstatsd-slo", []string{"Objectives", "Burn rate", "Events"}, `slo=~"$slo"`},
}

func (d *dashboardFile) path() string { return "../../deploy/grafana/" + d.name }

// dashboard is the tested part of Grafana's format.
type dashboard struct {
	UID        string
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
			Definition string
		}
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		Expr, LegendFormat string
		Datasource         struct{ UID string }
	}
}

// queryVariables replaces the variables that Grafana replaces in queries.
var queryVariables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h")

// TestDashboards checks that each dashboard has its rows in order, that every panel has a description
// and the selected data source, and that every query is about existing metrics.
func TestDashboards(t *testing.T) {
	for _, file := range dashboards {
		t.Run(file.name, func(t *testing.T) { file.check(t) })
	}
}

func (file *dashboardFile) read(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, file.path()), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func (file *dashboardFile) check(t *testing.T) {
	d := file.read(t)
	if d.UID != file.uid {
		t.Errorf("uid %q: links to the dashboard break", d.UID)
	}
	if first := d.Templating.List[0]; first.Type != "datasource" || first.Name != "datasource" ||
		first.Query != "prometheus" {
		t.Errorf("the data source is not a variable: %+v", first)
	}
	known, ids := metricNames(t), map[int]bool{}
	for _, variable := range d.Templating.List[1:] {
		selector, ok := strings.CutPrefix(variable.Definition, "label_values(")
		if end := strings.LastIndex(selector, ", "); !ok || end < 0 {
			t.Errorf("the variable %s queries %s", variable.Name, variable.Definition)
		} else {
			checkQuery(t, "variable "+variable.Name, selector[:end], known)
		}
	}
	var rows []string
	for i, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: the panel ID %d is already in use", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, before := range d.Panels[:i] {
			if p.overlaps(before) {
				t.Errorf("%s overlaps %s", p.Title, before.Title)
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		p.check(t, file.matcher, known)
	}
	if !slices.Equal(rows, file.rows) {
		t.Errorf("rows %q", rows)
	}
}

func (p *panel) check(t *testing.T, matcher string, known map[string]bool) {
	t.Helper()
	if p.Title == "" || len(p.Description) < 20 || len(p.Targets) == 0 ||
		p.Datasource.UID != "${datasource}" {
		t.Errorf("panel %d, %q: title, description, query or data source is missing", p.ID, p.Title)
	}
	for _, target := range p.Targets {
		if target.Datasource.UID != "${datasource}" {
			t.Errorf("%s uses the data source %q", p.Title, target.Datasource.UID)
		}
		if !strings.Contains(target.Expr, matcher) {
			t.Errorf("%s ignores the selected labels", p.Title)
		}
		checkQuery(t, p.Title, queryVariables.Replace(target.Expr), known)
	}
}

func (p *panel) overlaps(q panel) bool {
	a, b := p.GridPos, q.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}
