package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// TestDropUnsampled_Values: the default is the agent's setting, which config shows. The flag
// accepts on, off and booleans, and rejects other values.
func TestDropUnsampled_Values(t *testing.T) {
	for _, c := range []struct {
		args, variables []string
		value, means    string
	}{
		{nil, nil, "auto", "on if the agent has client_drop_p0s"},
		{[]string{"--drop-unsampled=auto"}, nil, "auto", "on if the agent has client_drop_p0s"},
		{[]string{"--drop-unsampled"}, nil, "on", ""},
		{[]string{"--drop-unsampled=on"}, nil, "on", ""},
		{[]string{"--drop-unsampled=true"}, nil, "on", ""},
		{[]string{"--drop-unsampled=off"}, nil, "off", ""},
		{[]string{"--drop-unsampled=false"}, nil, "off", ""},
		{nil, []string{"SPANSTATSD_DROP_UNSAMPLED=true"}, "on", ""},
		{nil, []string{"SPANSTATSD_DROP_UNSAMPLED=off"}, "off", ""},
		{
			[]string{"--drop-unsampled=auto"},
			[]string{"SPANSTATSD_DROP_UNSAMPLED=off"},
			"auto",
			"on if the agent has client_drop_p0s",
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
			if s.Name == "drop-unsampled" && (s.Value != c.value || s.Effective != c.means ||
				s.Default != "auto") {
				t.Errorf("%v %v: %+v", c.args, c.variables, s)
			}
		}
	}
	if output := refusal(t, []string{"config", "--check", "--drop-unsampled=maybe"}); !strings.Contains(output,
		`"maybe" is not one of auto, on, off`) {
		t.Errorf("output: %s", output)
	}
}
