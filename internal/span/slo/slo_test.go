package slo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

// parse parses objectives that must be valid.
func parse(t *testing.T, texts ...string) *slo.List {
	t.Helper()
	objectives, err := slo.Parse(texts)
	if err != nil {
		t.Fatal(err)
	}
	list, err := slo.NewList(objectives)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func label(name, value string) slo.Label { return slo.Label{Name: name, Value: value} }

// A text has one objective per line, with its fields in any order.
func TestParse_ReadsEveryField(t *testing.T) {
	list := parse(t, "checkout: service=Shop, span=POST /checkout, 300ms, 99.9%\n\n jobs.v2 :99.95% , kind=consumer,28d,env=prod,tenant=acme",
		"all: service=shop, 99%, kind=any")
	want := []slo.Objective{
		{
			Name: "checkout", Service: "Shop", Labels: []slo.Label{label("service", "shop"), label("span", "POST /checkout")},
			Kinds: []string{"server", "consumer"}, Threshold: 300 * time.Millisecond, Target: 99.9, Days: 30,
		},
		{Name: "jobs.v2", Labels: []slo.Label{label("env", "prod"), label("tenant", "acme")}, Kinds: []string{"consumer"}, Target: 99.95, Days: 28},
		{Name: "all", Service: "shop", Labels: []slo.Label{label("service", "shop")}, Kinds: []string{}, Target: 99, Days: 30},
	}
	if got := list.All(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := list.All()[0].ErrorBudget(); got != .001 {
		t.Errorf("error budget %v of 99.9%%", got)
	}
	if got := list.AttributeNames(); !slices.Equal(got, []string{"tenant"}) {
		t.Errorf("attributes %q", got)
	}
	if none := parse(t, "", " \n"); none != nil || none.Len() != 0 {
		t.Error("no objectives are some")
	}
}

// The error has the objective and the part of it that is invalid.
func TestParse_InvalidIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"service=shop, 99%":                      "the name is missing",
		"a b: service=shop, 99%":                 `"a b" is not a name`,
		"a: 99%":                                 "selects every span",
		"a: kind=server, 99%":                    "selects every span",
		"a: service=shop":                        "the target is missing",
		"a: service=shop, 100%":                  "100% is not a target",
		"a: service=shop, x%":                    "x% is not a target",
		"a: service=shop, NaN%":                  "NaN% is not a target",
		"a: service=shop, 99.99999999999%":       "99.99999999999% is not a target",
		"a: service=shop, 99%, 98%":              "two targets",
		"a: service=shop, 99%, 7d":               "7d is not a window",
		"a: service=shop, 99%, 30d, 30d":         "two windows",
		"a: service=shop, 99%, 300":              `"300" is not a field`,
		"a: service=shop, 99%, -1s":              `"-1s" is not a field`,
		"a: service=shop, 99%, 1s, 2s":           "two thresholds",
		"a: service=shop, 99%,":                  `"" is not a field`,
		"a: service=, 99%":                       "the value of service is empty",
		"a: service=x, service=y, 99%":           "service occurs twice",
		"a: route=/x, 99%":                       "use http.route=/x",
		"a: service.name=x, 99%":                 "use service=x",
		"a: span.name=x, 99%":                    "use span=x",
		"a: kind=web, service=x, 99%":            `"web" is not a kind`,
		"a: kind=any, kind=any, service=x, 99%":  "kind occurs twice",
		"a: service=x, peer service=y, 99%, 30d": `"peer service" is not a label`,
	} {
		_, err := slo.Parse([]string{text})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "parse --slo") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestNewList_LimitsObjectives(t *testing.T) {
	var lines []string
	for i := range slo.MaxObjectives + 1 {
		lines = append(lines, fmt.Sprintf("o%d: service=shop, 99%%", i))
	}
	if got := parse(t, lines[1:]...).Len(); got != slo.MaxObjectives {
		t.Errorf("%d objectives", got)
	}
	tooMany, _ := slo.Parse(lines)
	if _, err := slo.NewList(tooMany); err == nil || !strings.Contains(err.Error(), "exceed the maximum of 32") {
		t.Error(err)
	}
	twice, _ := slo.Parse([]string{lines[0], lines[0]})
	if _, err := slo.NewList(twice); err == nil || !strings.Contains(err.Error(), "two with the name o0") {
		t.Error(err)
	}
}

// Each label is compared with the part of the key or origin that has its value.
func TestList_MatchesLabels(t *testing.T) {
	key := span.Key{
		Service: "shop", Operation: "http.server.request", Resource: "POST /checkout", Kind: "server",
		HTTPMethod: "POST", HTTPEndpoint: "/checkout", PeerTags: []string{"rpc.system.name:grpc"}, AdditionalTags: []string{"tenant.id:a:b"},
	}
	origin := span.Origin{Env: "prod"}
	for text, want := range map[string]bool{
		"service=shop": true, "service=other": false,
		"span=POST /checkout": true, "span=POST": false,
		"operation=http.server.request": true, "operation=web": false,
		"env=prod": true, "env=test": false,
		"http.route=/checkout": true, "http.route=/": false,
		"http.request.method=POST": true, "http.request.method=GET": false,
		"rpc.system.name=grpc": true, "rpc.system.name=x": false,
		"tenant.id=a:b": true, "tenant.id=a": false, "tenant.name=a": false,
		"service=shop, kind=server": true, "service=shop, kind=client": false, "service=shop, kind=any": true,
		"service=shop, env=test": false,
	} {
		if got := parse(t, "a: 99%, "+text).Match(&key, &origin) != 0; got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	withID := span.Key{Service: "shop", Resource: "GET /users/17", Kind: "server"}
	for text, want := range map[string]bool{"GET /users/{id}": true, "GET /users/{uuid}": false, "GET /users/17": true, "GET /users": false} {
		if got := parse(t, "a: 99%, span="+text).Match(&withID, &origin) != 0; got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	internal := span.Key{Service: "shop", Kind: "internal"}
	if parse(t, "a: 99%, service=shop").Match(&internal, &origin) != 0 {
		t.Error("an internal span matches by default")
	}
	list := parse(t, "a: 99%, service=shop", "b: 99%, service=other", "c: 99%, env=prod")
	if got := list.Match(&key, &origin); got != 0b101 {
		t.Errorf("matching: %b", got)
	}
	if (*slo.List)(nil).Match(&key, &origin) != 0 {
		t.Error("no objectives match a span")
	}
}

// The threshold is exact to the nanosecond. An error is never good.
func TestCounts_ThresholdIsExact(t *testing.T) {
	list := parse(t, "a: service=shop, 300ms, 99%", "b: service=shop, 99%")
	counts := make(slo.Counts, 2)
	for _, duration := range []uint64{0, 299_999_999, 300_000_000, 300_000_001, 1 << 63} {
		counts.AddSpan(list, 0b11, duration, 0, 1)
		counts.AddSpan(list, 0b11, duration, span.Error, 1)
	}
	counts.AddSpan(list, 0b10, 1, span.TopLevel, 2.5)
	if want := (slo.Counts{{Events: 10, Good: 3}, {Events: 12.5, Good: 7.5}}); !slices.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
	isComplete := counts.AddGroup(list, 0b10, 10, 4)
	if want := (slo.Count{Events: 22.5, Good: 13.5}); counts[1] != want || !isComplete {
		t.Errorf("after a group: %v, %t", counts[1], isComplete)
	}
	if counts.AddGroup(list, 0b11, 10, 4) || counts[0] != (slo.Count{Events: 10, Good: 3}) {
		t.Error("a group without durations was counted by an objective with a threshold")
	}
}

const file = `apiVersion: openslo/v1
kind: Service
metadata: {name: shop}
---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: checkout
  displayName: Checkout
spec:
  description: Customers can pay.
  service: shop
  indicator:
    metadata: {name: checkout-latency}
    spec:
      thresholdMetric:
        metricSource:
          type: spanstatsd
          spec: {span: POST /checkout, kind: server}
  timeWindow:
    - {duration: 28d, isRolling: true}
  budgetingMethod: Occurrences
  objectives:
    - {op: lte, value: 0.3, target: 0.999}
`

func readFile(t *testing.T, content string) ([]slo.Objective, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "slo.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return slo.ReadFile(name)
}

func TestReadFile_ReadsOpenSLO(t *testing.T) {
	errorsOnly := strings.Replace(file, "{op: lte, value: 0.3, target: 0.999}", "{targetPercent: 99.95}", 1)
	got, err := readFile(t, file+"---\n"+strings.Replace(errorsOnly, "checkout", "pay", 1))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := slo.Parse([]string{
		"checkout: service=shop, span=POST /checkout, kind=server, 300ms, 99.9%, 28d",
		"pay: service=shop, span=POST /checkout, kind=server, 99.95%, 28d",
	})
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestReadFile_UnsupportedIsNamed(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"apiVersion: openslo/v1\nkind: SLO", "apiVersion: openslo/v1alpha\nkind: SLO", "use openslo/v1"},
		{"kind: SLO", "kind: SLI", "no document has the kind SLO"},
		{"thresholdMetric:", "ratioMetric: {}\n      thresholdMetric:", "ratioMetric is not supported"},
		{"type: spanstatsd", "type: prometheus", `type "prometheus"; use spanstatsd`},
		{"spec: {span", "sepc: {span", "metricSource has no spec"},
		{"service: shop", "service: shop\n  indicatorRef: x", "indicatorRef is not supported"},
		{"Occurrences", "Timeslices", "use Occurrences"},
		{"isRolling: true", "isRolling: false", "not rolling"},
		{"duration: 28d", "duration: 4w", "use days"},
		{"target: 0.999", "target: 99.9", "no target between 0 and 1"},
		{"target: 0.999", "target: 0.999, targetPercent: 99.9", "both target and targetPercent"},
		{"op: lte", "op: gte", `op "gte"; use lte`},
		{"value: 0.3", "value: 0", "use the threshold in seconds"},
		{"value: 0.3", "value: .nan", "use the threshold in seconds"},
		{"value: 0.3", "value: 1e-10", "use the threshold in seconds"},
		{"value: 0.3, ", "", "an op, but no value"},
		{"op: lte, ", "", `op ""; use lte`},
		{"    - {op", "    - {target: 0.9}\n    - {op", "2 objectives; use one"},
		{"kind: server}", "route: /}", "use http.route=/"},
		{"name: checkout\n", "name: a b\n", "is not a name"},
		{"spec:\n  description", "spec: [\n  description", "decode YAML"},
	} {
		content := strings.Replace(file, c.old, c.new, 1)
		if content == file {
			t.Fatalf("%q is not in the file", c.old)
		}
		if _, err := readFile(t, content); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.new, err, c.want)
		}
	}
	if _, err := readFile(t, strings.Repeat("#", slo.MaxFileBytes+1)); err == nil || !strings.Contains(err.Error(), "exceeds") {
		t.Error(err)
	}
	if _, err := slo.ReadFile(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "read --slo-file") {
		t.Error(err)
	}
}
