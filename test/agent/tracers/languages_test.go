//go:build languages

package tracers

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// These tests run the tracers for other languages, as installed by languages.sh (`make test-tracers`).
// The regular tests leave them out, because they install nothing.

// app is an application with its expected counts.
type app struct {
	command []string
	env     []string
	spans   int64   // in its traces
	counted float64 // counted spans; 0 if that depends on the tracer or the agent
	left    bool    // the daemon leaves some of them to the agent
}

var tracers = os.Getenv("TRACERS_DIR")

func pythonShop() app {
	return app{
		command: []string{tracers + "/python/bin/python", "apps/shop.py"}, spans: 4 * 50 * 3,
		counted: 4 * 50 * 2,
	}
}

func nodeShop() app {
	return app{
		command: []string{"node", "apps/shop.js"},
		env:     []string{"NODE_PATH=" + tracers + "/node/node_modules"}, spans: 4 * 50 * 3,
		counted: 4 * 50 * 3,
	}
}

// javaShop is the Java web application. An order has eight spans, a missing order six, and creating the
// database two.
func javaShop(arguments ...string) app {
	folder := tracers + "/java"
	command := []string{
		"java", "-javaagent:" + folder + "/dd-java-agent.jar", "-cp",
		folder + "/classes:" + folder + "/lib/*", "Shop",
	}
	return app{command: append(command, arguments...), spans: 2 + 640*8 + 160*6, counted: 2 + 640*5 + 160*3}
}

func TestPython(t *testing.T) {
	for _, s := range settings("0.4", "0.5") {
		t.Run(s.String(), func(t *testing.T) { pythonShop().test(t, s) })
	}
}

func TestNode(t *testing.T) {
	for _, s := range settings("0.4", "0.5") {
		t.Run(s.String(), func(t *testing.T) { nodeShop().test(t, s) })
	}
}

func TestJava(t *testing.T) {
	for _, s := range settings("0.4", "0.5", "1.0") {
		t.Run(s.String(), func(t *testing.T) { javaShop().test(t, s) })
	}
}

// TestJava_Measured counts spans without a type. In v0.5 bodies they are left to the agent. In v1.0
// bodies the agent does not see that they are measured.
func TestJava_Measured(t *testing.T) {
	shop := javaShop("measured")
	shop.counted += 800
	t.Run("0.4", func(t *testing.T) { shop.test(t, setting{protocol: "0.4"}) })
	shop.left = true
	t.Run("0.5", func(t *testing.T) { shop.test(t, setting{protocol: "0.5"}) })
	shop.counted, shop.left = 0, false
	t.Run("1.0", func(t *testing.T) { shop.test(t, setting{protocol: "1.0"}) })
}

func TestPython_Labels(t *testing.T) {
	for _, protocol := range []string{"0.4", "0.5"} {
		t.Run(protocol, func(t *testing.T) { pythonShop().testLabels(t, setting{protocol: protocol}) })
	}
}

func TestNode_Labels(t *testing.T) {
	for _, protocol := range []string{"0.4", "0.5"} {
		t.Run(protocol, func(t *testing.T) { nodeShop().testLabels(t, setting{protocol: protocol}) })
	}
}

func TestJava_Labels(t *testing.T) {
	for _, s := range []setting{
		{protocol: "0.4", renames: true},
		{protocol: "0.4"},
		{protocol: "1.0", renames: true},
	} {
		t.Run(s.String(), func(t *testing.T) { javaShop().testLabels(t, s) })
	}
}

// testLabels compares the groups of the application's tracer.
func (a app) testLabels(t *testing.T, s setting) {
	compareLabels(t, s, false, func(p *pair, s setting) {
		command := a.start(t, s, p.fork.socket)
		command.Env = append(command.Env, labelVariables(t, s)...)
		command.Env = append(command.Env,
			"DD_TRACE_EXPERIMENTAL_FEATURES_ENABLED=DD_TRACE_STATS_ADDITIONAL_TAGS")
		if said, err := command.CombinedOutput(); err != nil || complains(string(said)) {
			t.Errorf("the application ended with %v: %s", err, said)
		}
	})
}

// settings returns all settings for the given protocols.
func settings(protocols ...string) (all []setting) {
	for _, protocol := range protocols {
		all = append(all, setting{protocol: protocol}, setting{protocol: protocol, computes: true},
			setting{protocol: protocol, drop: true})
	}
	return all
}

// complains reports whether the log contains an error. The Java tracer logs "no error" at info level.
func complains(said string) bool {
	for line := range strings.Lines(said) {
		if !strings.Contains(line, " INFO ") && strings.Contains(strings.ToLower(line), "error") {
			return true
		}
	}
	return false
}

// test runs the application once.
func (a app) test(t *testing.T, s setting) {
	p := startPair(t, s)
	command := a.start(t, s, p.fork.socket)
	said, err := command.CombinedOutput()
	if err != nil || complains(string(said)) {
		t.Errorf("the application ended with %v: %s", err, said)
	}
	o := p.compare(t, s)
	if s.computes {
		o.counted = o.byTracer
	}
	if !s.drop && o.spans != a.spans || a.counted != 0 && o.counted != a.counted || a.left != (o.left != 0) {
		t.Errorf("%+v", o)
	}
}

// start returns the application's command, with its tracer in front of an agent.
func (a app) start(t testing.TB, s setting, agent string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), a.command[0], a.command[1:]...)
	command.Env = append(append(command.Environ(), a.env...),
		"DD_TRACE_AGENT_URL=unix://"+agent, "DD_SERVICE=shop", "DD_ENV=test", "DD_VERSION=1.2",
		"DD_TRACE_API_VERSION=v"+s.protocol, "DD_TRACE_AGENT_PROTOCOL_VERSION="+s.protocol,
		"DD_TRACE_STATS_COMPUTATION_ENABLED="+fmt.Sprint(s.computes),
		`DD_TRACE_SAMPLING_RULES=[{"sample_rate":`+s.rate()+"}]", "DD_TRACE_RATE_LIMIT=100000",
		"DD_TRACE_STARTUP_LOGS=false", "DD_INSTRUMENTATION_TELEMETRY_ENABLED=false",
		"DD_REMOTE_CONFIGURATION_ENABLED=false")
	return command
}
