package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const checkoutSLO = "checkout: service=shop, span=POST /checkout, 300ms, 99.9%"

// TestSLO_FlagsConfigureObjectives: objectives of both flags, and of the environment variable, reach publishers and exporters.
func TestSLO_FlagsConfigureObjectives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slo.yaml")
	const document = `{apiVersion: openslo/v1, kind: SLO, metadata: {name: pay}, spec: {service: shop, indicator: {spec: {thresholdMetric: ` +
		`{metricSource: {type: spanstatsd, spec: {tenant: acme}}}}}, objectives: [{target: 0.99}]}}`
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	c := completed(t, "--prometheus", "--slo="+checkoutSLO, "--slo=a: service=a, 99%\nb: service=b, 99%", "--slo-file", file,
		"--prometheus-dimensions=all,tenant").config
	if got := c.Admit.Objectives.Names(); !slices.Equal(got, []string{"checkout", "a", "b", "pay"}) {
		t.Errorf("%q", got)
	}
	if none := completed(t, "--prometheus").config; none.Admit.Objectives != nil {
		t.Error("objectives without a flag")
	}
}

// TestSLO_InvalidFlags: each error names the flag and what to do.
func TestSLO_InvalidFlags(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--prometheus", "--slo=checkout"}, "the name is missing"},
		{[]string{"--prometheus", "--slo-file=/none"}, "read --slo-file"},
		{[]string{"--agent-url=http://127.0.0.1:8126", "--slo=" + checkoutSLO}, "add --prometheus"},
		{[]string{"--prometheus", "--slo=a: tenant=acme, 99%"}, "add tenant to --prometheus-dimensions"},
		{
			[]string{
				"--prometheus", "--otlp-addr=127.0.0.1:4318", "--prometheus-dimensions=all,db.system", "--slo=a: db.system=x, 99%",
			},
			"objectives can't compare db.system",
		},
		{[]string{"--prometheus", "--slo=" + checkoutSLO, "--slo=" + checkoutSLO}, "two with the name checkout"},
	} {
		out := refusal(t, append([]string{"config", "--check"}, c.flags...))
		if !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%q: %s, want one line with %s", c.flags, out, c.want)
		}
	}
}

// TestSLORules_PrintsRules: the command prints a rule file, and needs an objective.
func TestSLORules_PrintsRules(t *testing.T) {
	out, err := program(t, "slo", "rules", "--slo", checkoutSLO).Output()
	if err != nil || !strings.Contains(string(out), `traces_slo_good_events_total{slo="checkout"}[5m]`) {
		t.Errorf("%v: %s", err, out)
	}
	if out := refusal(t, []string{"slo", "rules"}); !strings.Contains(out, "set --slo or --slo-file") {
		t.Error(out)
	}
}
