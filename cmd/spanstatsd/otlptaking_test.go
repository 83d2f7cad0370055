package main

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
)

// TestOTLPReceiver_Flags: flags select the semantic mode, and how forwarded requests are marked.
// Invalid combinations are errors.
func TestOTLPReceiver_Flags(t *testing.T) {
	const addr, forward = "--otlp-addr=127.0.0.1:4318", "--otlp-forward=http://collector"
	for _, c := range []struct {
		args []string
		says string // part of the error; "" if the flags are valid
	}{
		{[]string{addr}, ""},
		{[]string{addr, "--otlp-semantics=datadog"}, ""},
		{
			[]string{
				addr, "--otlp-semantics=datadog", "--agent-url=off",
				"--otlp-metrics-endpoint=http://h:4318",
			},
			"",
		},
		{[]string{addr, forward, "--otlp-semantics=datadog", "--otlp-mark=header"}, ""},
		{[]string{addr, forward, "--otlp-mark=attribute"}, ""},
		{[]string{addr, "--otlp-semantics=klingon"}, `"klingon"`},
		{[]string{addr, forward, "--otlp-mark=klingon"}, `"klingon"`},
		{[]string{addr, "--otlp-mark=attribute"}, "otlp-forward"},
	} {
		out, err := program(t, append([]string{"config", "--check"}, c.args...)...).CombinedOutput()
		if (err != nil) != (c.says != "") || !strings.Contains(string(out), c.says) {
			t.Errorf("%v: %v, %s", c.args, err, out)
		}
	}
	for _, c := range []struct {
		args  []string
		marks bool
	}{
		{[]string{}, false},
		{[]string{"--otlp-mark=attribute"}, true},
		{[]string{"--otlp-semantics=datadog"}, true},
		{[]string{"--otlp-semantics=datadog", "--otlp-mark=header"}, false},
	} {
		var options receiverOptions
		config := daemon.DefaultConfig()
		flags := options.group(&config).Flags
		if err := flags.Parse(append(c.args, forward)); err != nil {
			t.Fatal(err)
		}
		if err := options.complete(&config, newSettings(flags, nil)); err != nil || config.OTLP.MarksCounted != c.marks {
			t.Errorf("%v: %v, marks %v", c.args, err, config.OTLP.MarksCounted)
		}
	}
}
