package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// TestTracerVariables_AreDefaults: limits and tags in environment variables of tracers apply
// unless a flag, or the variable of a flag, is set. config shows the value and its source.
func TestTracerVariables_AreDefaults(t *testing.T) {
	const limit, tags = "DD_TRACE_STATS_RESOURCE_CARDINALITY_LIMIT", "DD_TRACE_STATS_ADDITIONAL_TAGS"
	type want struct{ name, value, means, origin, variable string }
	for _, c := range []struct {
		args, variables []string
		want
	}{
		{nil, nil, want{"cardinality-limit", "[]", "", status.FromDefault, ""}},
		{nil, []string{limit + "=300"}, want{
			"cardinality-limit", "[]", "resource=300",
			status.FromEnvironment, limit,
		}},
		{
			nil,
			[]string{limit + "=300", "DD_TRACE_STATS_PEER_TAGS_CARDINALITY_LIMIT=7"},
			want{
				"cardinality-limit", "[]", "resource=300,peer_tag=7", status.FromEnvironment,
				limit + ", DD_TRACE_STATS_PEER_TAGS_CARDINALITY_LIMIT",
			},
		},
		{
			[]string{"--cardinality-limit=resource=5"},
			[]string{limit + "=300"},
			want{"cardinality-limit", "[resource=5]", "", status.FromFlag, ""},
		},
		{
			[]string{"--cardinality-limit=resource=5"},
			[]string{limit + "=lots"},
			want{"cardinality-limit", "[resource=5]", "", status.FromFlag, ""},
		},
		{
			nil,
			[]string{"SPANSTATSD_CARDINALITY_LIMIT=resource=5", limit + "=300"},
			want{
				"cardinality-limit", "[resource=5]", "", status.FromEnvironment,
				"SPANSTATSD_CARDINALITY_LIMIT",
			},
		},
		{
			[]string{"--cardinality-limit=type=5"},
			[]string{limit + "=300"},
			want{"cardinality-limit", "[type=5]", "and resource=300 by " + limit, status.FromFlag, ""},
		},
		{nil, []string{tags + "=tier"}, want{"apm-additional-tags", "[]", "", status.FromDefault, ""}},
		{
			[]string{"--apm-labels=tracer"},
			[]string{tags + "= tier,,region,tier "},
			want{"apm-additional-tags", "[tier,region]", "", status.FromEnvironment, tags},
		},
		{
			[]string{"--apm-labels=tracer", "--apm-additional-tags=zone"},
			[]string{tags + "=tier"},
			want{"apm-additional-tags", "[zone]", "", status.FromFlag, ""},
		},
	} {
		cmd := program(t, append([]string{"config", "--json"}, c.args...)...)
		cmd.Env = append(cmd.Env, c.variables...)
		out, err := cmd.Output()
		var settings []status.Setting
		if err != nil || json.Unmarshal(out, &settings) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, s := range settings {
			if got := (want{s.Name, s.Value, s.Effective, s.Origin, s.Variable}); s.Name == c.name &&
				got != c.want {
				t.Errorf("%v %v: %+v, want %+v", c.args, c.variables, got, c.want)
			}
		}
	}
}

// TestTracerVariables_Invalid: an invalid variable is an error if its value would
// apply.
func TestTracerVariables_Invalid(t *testing.T) {
	for _, v := range limitVariables {
		for _, value := range []string{"many", "0", "-1", "1048577", "1.5"} {
			output := refusal(t, []string{"config", "--check"}, v.name+"="+value)
			if !strings.Contains(output, v.name) || !strings.Contains(output, value) ||
				!strings.Contains(output, "--cardinality-limit "+v.label.String()) {
				t.Errorf("%s=%s: output: %s", v.name, value, output)
			}
		}
	}
	for _, variable := range []string{
		"DD_TRACE_STATS_ADDITIONAL_TAGS=a:b",
		"DD_TRACE_RESOURCE_RENAMING_ENABLED=perhaps",
	} {
		name, _, _ := strings.Cut(variable, "=")
		if output := refusal(t, []string{"config", "--check", "--apm-labels=tracer"},
			variable); !strings.Contains(output, name) {
			t.Errorf("%s: output: %s", variable, output)
		}
		cmd := program(t, "config", "--check")
		cmd.Env = append(cmd.Env, variable)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s without labels of tracers: %s", variable, out)
		}
	}
	for args, want := range map[string]string{
		"--apm-labels=both": `"both" is not one of agent, tracer`, "--apm-socket=/a " +
			"--apm-additional-tags=a:b": `"a:b" is not a tag name`,
	} {
		if output := refusal(t, append([]string{"config", "--check"},
			strings.Fields(args)...)); !strings.Contains(output, want) {
			t.Errorf("%s: output: %s", args, output)
		}
	}
}
