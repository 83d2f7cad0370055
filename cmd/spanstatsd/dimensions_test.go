package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
)

// completed returns the configuration of a valid command line.
func completed(t *testing.T, args ...string) *runOptions {
	t.Helper()
	o := &runOptions{}
	o.addTo(&cobra.Command{Use: "run"})
	if err := o.flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := o.complete(newSettings(o.flags, nil)); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestReceivers_ReadAttributesOfMetrics: receivers read the attributes of the conventions' metrics only if an exporter
// has these metrics.
func TestReceivers_ReadAttributesOfMetrics(t *testing.T) {
	const endpoint = "--otlp-metrics-endpoint=http://127.0.0.1:4318/v1/metrics"
	for args, want := range map[string]bool{
		endpoint: false, endpoint + " --otlp-dialect=conventions": true,
		"--prometheus --prometheus-dialect=conventions": true, endpoint + " --prometheus-dialect=conventions": false,
	} {
		c := &completed(t, strings.Fields(args)...).config
		if c.OTLP.Labels.Metrics != want || c.Zipkin.Labels.Metrics != want {
			t.Errorf("%s: receivers read them: %t and %t", args, c.OTLP.Labels.Metrics, c.Zipkin.Labels.Metrics)
		}
	}
}

// TestReceivers_MeasureDurations: with --measure=gen_ai, receivers count the durations of model calls as values, unless
// every destination has this metric already, because its dialect is conventions.
func TestReceivers_MeasureDurations(t *testing.T) {
	const common = "--measure=gen_ai --otlp-addr=127.0.0.1:4318 --prometheus "
	const endpoint = "--otlp-metrics-endpoint=http://127.0.0.1:4319/v1/metrics "
	for args, want := range map[string]bool{
		"":                                      true,
		"--prometheus-dialect=conventions":      false,
		"--otlp-dialect=conventions":            true, // without an endpoint
		endpoint + "--otlp-dialect=conventions": true,
		endpoint + "--prometheus-dialect=conventions":                            true,
		endpoint + "--prometheus-dialect=conventions --otlp-dialect=conventions": false,
	} {
		measures := completed(t, strings.Fields(common+args)...).config.OTLP.Labels.Measures
		isDuration := func(m measure.Measure) bool { return m.IsDuration() }
		if got := slices.ContainsFunc(measures, isDuration); got != want {
			t.Errorf("%s: durations are counted: %t, want %t", args, got, want)
		}
	}
}

// TestReceivers_ReadDimensionsOfExporters: receivers read the attributes that an exporter's dimensions name,
// if the exporter is enabled. Each attribute has the largest of its budgets.
func TestReceivers_ReadDimensionsOfExporters(t *testing.T) {
	c := &completed(t, "--otlp-metrics-endpoint=http://127.0.0.1:4318/v1/metrics", "--prometheus",
		"--otlp-dimensions=all,tenant.id=50,feature", "--prometheus-dimensions=all,tenant.id=200,zone=7",
		"--cardinality-limit=tag:shard=9,service=3", "--apm-labels=tracer", "--apm-additional-tags=plan=11,tier").config
	names := c.OTLP.Labels.Attributes
	if !slices.Equal(names, []string{"tenant.id", "feature", "zone"}) ||
		!slices.Equal(names, c.Zipkin.Labels.Attributes) {
		t.Errorf("receivers read %q and %q", names, c.Zipkin.Labels.Attributes)
	}
	if !slices.Equal(c.APM.Labels.AdditionalTags, []string{"plan", "tier"}) {
		t.Errorf("additional tags %q", c.APM.Labels.AdditionalTags)
	}
	for name, want := range map[string]int{
		"tenant.id": 200, "zone": 7, "shard": 9, "plan": 11, "feature": 0,
		"tier": 0,
	} {
		if got := c.Aggregate.TagBudgets[name]; got != want {
			t.Errorf("%s has a budget of %d, want %d", name, got, want)
		}
	}
	off := &completed(t, "--otlp-metrics-endpoint=off", "--prometheus=off",
		"--agent-url=http://127.0.0.1:8126",
		"--otlp-dimensions=all,tenant.id=50", "--prometheus-dimensions=zone").config
	if len(off.OTLP.Labels.Attributes) != 0 || len(off.Aggregate.TagBudgets) != 0 {
		t.Errorf("without the exporter, receivers read %q", off.OTLP.Labels.Attributes)
	}
	for _, args := range [][]string{
		{"--prometheus-dimensions=a,b,c,d,e,f,g,h,i"},
		{"--prometheus-dimensions=tenant.id=0"},
		{"--prometheus-dimensions=-peer.service"},
		{"--otlp-metrics-endpoint=http://127.0.0.1:4318/v1/metrics", "--otlp-dimensions=all,peer.service,-peer.service"},
		{"--cardinality-limit=tag:x=y"},
		{"--apm-labels=tracer", "--apm-additional-tags=a=b"},
	} {
		if out, err := program(t,
			append([]string{"config", "--check"}, args...)...).CombinedOutput(); err == nil {
			t.Errorf("%q is accepted: %s", args, out)
		}
	}
	if out, err := program(t, "config", "--check", "--otlp-addr=127.0.0.1:4318",
		"--prometheus-dimensions=all,a,b,c,d,e,f,g,h,db.system.name,http.route").CombinedOutput(); err != nil {
		t.Errorf("eight custom dimensions next to known ones: %s", out)
	}
	but := &completed(t, "--otlp-metrics-endpoint=http://127.0.0.1:4318/v1/metrics", "--prometheus",
		"--otlp-dimensions=all,-peer.service,-rpc.method", "--prometheus-dimensions", "all,-peer.service,zone=9").config
	if got := but.OTLP.Labels.Attributes; !slices.Equal(got, []string{"zone"}) {
		t.Errorf("receivers read %q", got)
	}
}

// TestReceivers_KeepResourceAttributes: receivers keep the resource attributes that an enabled
// exporter names.
func TestReceivers_KeepResourceAttributes(t *testing.T) {
	const exporter, receiver = "--otlp-metrics-endpoint=http://127.0.0.1:4318/v1/metrics", "--otlp-addr=127.0.0.1:4318"
	for _, c := range []struct {
		args   []string
		counts bool
		want   []string
	}{
		{[]string{exporter, receiver}, true, otel.Identifying},
		{[]string{exporter, "--zipkin-addr=127.0.0.1:9411"}, true, otel.Identifying},
		{[]string{exporter}, false, otel.Identifying},
		{[]string{exporter, receiver, "--otlp-resource-attributes=none"}, false, nil},
		{
			[]string{exporter, receiver, "--otlp-resource-attributes=identifying, cloud.region"},
			true,
			append(slices.Clone(otel.Identifying), "cloud.region"),
		},
		{[]string{receiver, "--prometheus"}, false, nil},
		{
			[]string{receiver, "--prometheus", "--prometheus-dimensions=all,service.instance.id"},
			true,
			[]string{"service.instance.id"},
		},
	} {
		config := &completed(t, c.args...).config
		if got := config.OTLP.Labels.Resource; !slices.Equal(got, c.want) ||
			!slices.Equal(config.Zipkin.Labels.Resource, got) {
			t.Errorf("%q: receivers keep %q", c.args, got)
		}
		if config.Aggregate.Attributes != c.counts {
			t.Errorf("%q: memory for attributes is counted: %t", c.args, config.Aggregate.Attributes)
		}
	}
	for _, wrong := range []string{"a,,b", "none,a", "a b", strings.Repeat("a,", otel.MaxKept) + "b"} {
		if out, err := program(t, "config", "--check", exporter,
			"--otlp-resource-attributes="+wrong).CombinedOutput(); err == nil {
			t.Errorf("%q is accepted: %s", wrong, out)
		}
	}
}
