package slorules_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export/prometheus/slorules"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

var update = flag.Bool("update", false, "write the golden file")

// rules returns the rules for objectives.
func rules(t *testing.T, texts ...string) string {
	t.Helper()
	objectives, err := slo.Parse(texts)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := slorules.Write(&b, objectives); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Tests in test/deploy evaluate the same file as Prometheus and promtool do.
func TestWrite_GoldenFile(t *testing.T) {
	const name = "testdata/rules.yaml"
	got := rules(t, "checkout: service=shop, span=POST /checkout, 300ms, 99.9%", "jobs: env=prod, kind=consumer, 95%, 28d")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the rules differ from %s; if that is intended, run the test with -update. They are:\n%s", name, got)
	}
}

// The thresholds are those of the Site Reliability Workbook for 30 days. Conditions that are never true are left out.
func TestWrite_ThresholdsFollowWindow(t *testing.T) {
	for objective, want := range map[string][]string{
		"99.9%":      {"> 0.0144", "> 0.006", "> 0.003", "> 0.001"},
		"99.9%, 28d": {"> 0.01344", "> 0.0056", "> 0.0028", "> 0.000933333333"},
		"90%":        {"> 0.6", "> 0.3", "> 0.1"},
		"60%":        {"> 0.4"},
	} {
		got := rules(t, "a: service=shop, "+objective)
		for _, threshold := range want {
			if strings.Count(got, threshold+" and") != 1 {
				t.Errorf("%s: no threshold %s in\n%s", objective, threshold, got)
			}
		}
		if conditions := strings.Count(got, " and slo:"); conditions != len(want) {
			t.Errorf("%s: %d conditions", objective, conditions)
		}
	}
}
