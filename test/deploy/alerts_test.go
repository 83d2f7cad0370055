package deploy

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	promrules "github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// ruleFile is a file of rules and the file of series that fire its alerts.
type ruleFile struct{ rules, cases string }

const sloTestdata = "../../internal/export/prometheus/slorules/testdata/"

var (
	daemonRules  = ruleFile{"../../deploy/prometheus/alerts.yaml", "../../deploy/prometheus/alerts_test.yaml"}
	requestRules = ruleFile{
		"../../deploy/prometheus/requests.yaml",
		"../../deploy/prometheus/requests_test.yaml",
	}
	// sloRules are those that spanstatsd slo rules prints for two objectives.
	sloRules = ruleFile{sloTestdata + "rules.yaml", sloTestdata + "rules_test.yaml"}
)

// read returns the rules as parsed by Prometheus.
func (f ruleFile) read(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	groups, problems := rulefmt.ParseFile(f.rules, false, model.UTF8Validation, promParser,
		promslog.NewNopLogger())
	for _, problem := range problems {
		t.Fatal(problem)
	}
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// alerts returns the alerting rules.
func (f ruleFile) alerts(t *testing.T) []rulefmt.Rule {
	return slices.DeleteFunc(f.read(t), func(r rulefmt.Rule) bool { return r.Alert == "" })
}

// promParser parses queries like a server without experimental features.
var promParser = parser.NewParser(parser.Options{})

// rateText is the template for a readable rate: humanize would print 30.28m for 0.03.
const rateText = "{{ if lt $value 1.0 }}{{ $value | printf `%.2g` }}{{ else }}{{ $value | humanize }}{{ end }}"

// TestAlerts_AreDocumented checks that each alert has a summary, a severity, and an existing runbook
// section, and that each metric exists or is recorded by an earlier rule.
func TestAlerts_AreDocumented(t *testing.T) {
	for _, file := range []ruleFile{daemonRules, requestRules} {
		t.Run(filepath.Base(file.rules), func(t *testing.T) { file.checkAnnotations(t) })
	}
}

func (f ruleFile) checkAnnotations(t *testing.T) {
	runbook, known := string(readFile(t, "../../docs/operations.md")), metricNames(t)
	for _, rule := range f.read(t) {
		if rule.Record != "" {
			checkExpression(t, rule.Record, rule.Expr, known)
			known[rule.Record] = true
			continue
		}
		if rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s has no summary or no severity", rule.Alert)
		}
		if bare := strings.ReplaceAll(rule.Annotations["summary"], rateText, ""); strings.Contains(bare,
			"humanize }") {
			t.Errorf("%s says a rate below 1 in thousandths, as 30m for 0.03: write %s", rule.Alert, rateText)
		}
		_, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "docs/operations.md#")
		if !hasSection(runbook, anchor) {
			t.Errorf("%s links to #%s, but docs/operations.md has no such heading", rule.Alert, anchor)
		}
		checkQuery(t, rule.Alert, rule.Expr, known)
	}
}

// hasSection reports whether a document has a heading with the given anchor.
func hasSection(document, anchor string) bool {
	for line := range strings.Lines(document) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok && anchor != "" &&
			strings.ToLower(title) == anchor {
			return true
		}
	}
	return false
}

// ruleCases is the part of promtool's test format that the case files use.
type ruleCases struct {
	RuleFiles []string       `json:"rule_files"`
	Every     model.Duration `json:"evaluation_interval"`
	Tests     []ruleCase     `json:"tests"`
}

type ruleCase struct {
	Name     string         `json:"name"`
	Interval model.Duration `json:"interval"`
	Series   []struct {
		Series string `json:"series"`
		Values string `json:"values"`
	} `json:"input_series"`
	Alerts []struct {
		Name     string         `json:"alertname"`
		At       model.Duration `json:"eval_time"`
		Expected []struct {
			Labels      map[string]string `json:"exp_labels"`
			Annotations map[string]string `json:"exp_annotations"`
		} `json:"exp_alerts"`
	} `json:"alert_rule_test"`
}

// TestAlerts evaluates the rules over each case's series, minute by minute, and compares the firing
// alerts. For each alert there must be a case in which it fires and one in which it does not.
func TestAlerts(t *testing.T) {
	for _, file := range []ruleFile{daemonRules, requestRules, sloRules} {
		t.Run(filepath.Base(file.rules), func(t *testing.T) { file.fire(t) })
	}
}

func (f ruleFile) fire(t *testing.T) {
	var cases ruleCases
	if err := yaml.UnmarshalStrict(readFile(t, f.cases), &cases); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, c := range cases.Tests {
		for _, want := range c.Alerts {
			var expected []string
			for _, e := range want.Expected {
				e.Labels[labels.AlertName] = want.Name
				expected = append(expected, show(labels.FromMap(e.Labels), labels.FromMap(e.Annotations)))
			}
			slices.Sort(expected)
			got := f.firing(t, &c, want.Name, time.Duration(cases.Every), time.Duration(want.At))
			if !slices.Equal(got, expected) {
				t.Errorf("%s: %s after %s\ngot  %q\nwant %q", c.Name, want.Name, time.Duration(want.At), got,
					expected)
			}
			fires[want.Name] = fires[want.Name] || len(expected) > 0
			silent[want.Name] = silent[want.Name] || len(expected) == 0
		}
	}
	names := map[string]bool{} // several rules can have the same name
	for _, rule := range f.alerts(t) {
		names[rule.Alert] = true
	}
	for name := range names {
		if !fires[name] || !silent[name] {
			t.Errorf("%s: has a firing case: %t, has a case that does not fire: %t", name, fires[name], silent[name])
		}
		delete(fires, name)
	}
	if len(fires) > 0 {
		t.Errorf("cases of unknown alerts: %v", slices.Sorted(maps.Keys(fires)))
	}
}

// firing loads a case's series, evaluates all rules up to a time, and returns the alerts of one name
// that fire at that time.
func (f ruleFile) firing(t *testing.T, c *ruleCase, name string, every,
	until time.Duration,
) (alerts []string) {
	t.Helper()
	var series strings.Builder
	fmt.Fprintf(&series, "load %s\n", c.Interval)
	for _, s := range c.Series {
		fmt.Fprintf(&series, "  %s %s\n", s.Series, s.Values)
	}
	data, err := promqltest.NewLazyLoader(series.String(),
		promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	defer data.Close()
	manager := promrules.NewManager(&promrules.ManagerOptions{
		QueryFunc:  promrules.EngineQueryFunc(data.QueryEngine(), data.Storage()),
		Appendable: data.Storage(), Context: t.Context(), Parser: promParser,
		NotifyFunc: func(context.Context, string, ...*promrules.Alert) {},
		Logger:     promslog.NewNopLogger(),
	})
	groups, problems := manager.LoadGroups(every, labels.EmptyLabels(), "", nil, false,
		filepath.Clean(f.rules))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for at := time.Duration(0); at <= until; at += every {
		data.WithSamplesTill(time.Unix(0, 0).Add(at), func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range groups {
				group.Eval(data.Context(), time.Unix(0, 0).Add(at))
			}
		})
	}
	for _, group := range groups {
		for _, rule := range group.AlertingRules() {
			if err := rule.LastError(); err != nil {
				t.Fatalf("%s: %v", rule.Name(), err)
			}
			for _, a := range rule.ActiveAlerts() {
				if rule.Name() == name && a.State == promrules.StateFiring {
					alerts = append(alerts, show(a.Labels, a.Annotations))
				}
			}
		}
	}
	slices.Sort(alerts)
	return alerts
}

func show(of, annotations labels.Labels) string { return of.String() + " " + annotations.String() }
