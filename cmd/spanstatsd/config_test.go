package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// TestConfig prints each value with its source.
func TestConfig(t *testing.T) {
	cmd := program(t, "config", "--json", "--ring-slots=1024", "--drainers=fixed:3")
	cmd.Env = append(cmd.Env, "SPANSTATSD_MAX_ORIGINS=7", "DD_AGENT_HOST=agent.local",
		"SPANSTATSD_RING_SLOTS=2048")
	out, err := cmd.Output()
	var settings []status.Setting
	if err != nil || json.Unmarshal(out, &settings) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := map[string]status.Setting{}
	for _, s := range settings {
		got[s.Name] = s
	}
	for name, want := range map[string]status.Setting{
		"ring-slots": {Value: "1024", Default: "65536", Origin: status.FromFlag},
		"max-origins": {
			Value: "7", Default: "256", Origin: status.FromEnvironment,
			Variable: "SPANSTATSD_MAX_ORIGINS",
		},
		"agent-url": {
			Value: "http://agent.local:8126", Origin: status.FromEnvironment,
			Variable: "DD_AGENT_HOST",
		},
		"max-aggregates": {Value: "8192", Default: "8192", Origin: status.FromDefault},
		"drainers":       {Value: "fixed:3", Effective: "3", Default: "cpu:1", Origin: status.FromFlag},
	} {
		want.Name = name
		if got[name] != want {
			t.Errorf("%+v, want %+v", got[name], want)
		}
	}
	if _, isShown := got["check"]; isShown {
		t.Error("config shows its own flags")
	}
	out, err = program(t, "config", "--sketch-bytes=2097152").Output()
	if err != nil || !regexp.MustCompile(`(?m)^--sketch-bytes +2MiB +flag$`).Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestConfigCheck names all errors at once, and starts nothing.
func TestConfigCheck(t *testing.T) {
	cmd := program(t, "config", "--check", "--ring-slots=1000", "--shutdown-grace=0s", "--http-addr=x:none",
		"--retry-bytes=1", "--flush-interval=1h", "--web-config-file=/none",
		"--apm-socket=/s", "--apm-max-body=1")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitUsage {
		t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
	}
	for _, says := range []string{
		"1000 slots", "shutdown-grace", "http-addr", "retry-bytes",
		"flush-interval", "web-config-file", "apm-max-body",
	} {
		if !strings.Contains(string(out), says) {
			t.Errorf("nothing about %s in %s", says, out)
		}
	}
	cmd = program(t, "config", "--check", "--cardinality-limit=colour=3,shape=4",
		"--agent-url=ftp://x")
	out, _ = cmd.CombinedOutput()
	for _, says := range []string{"colour", "shape", "unknown scheme"} {
		if !strings.Contains(string(out), says) {
			t.Errorf("nothing about %s in %s", says, out)
		}
	}
	if out, err := program(t, "config", "--check").Output(); err != nil ||
		!strings.Contains(string(out), "is valid") {
		t.Errorf("the defaults: %v, %s", err, out)
	}
}

// TestConfigCheck_MissingDirectory: if the configuration is valid but a socket's directory is
// missing, so that run would fail, the output reports it.
func TestConfigCheck_MissingDirectory(t *testing.T) {
	here := t.TempDir()
	for args, lacks := range map[string]string{
		"--socket=" + here + "/s":                                  "",
		"--socket=" + here + "/none/s":                             here + "/none",
		"--socket=" + here + "/s --apm-socket=" + here + "/away/a": here + "/away",
	} {
		out, err := program(t, append([]string{"config", "--check"}, strings.Fields(args)...)...).Output()
		output := string(out)
		if err != nil || !strings.Contains(output, "is valid") ||
			strings.Contains(output, "on this machine yet") != (lacks != "") ||
			!strings.Contains(output, lacks) {
			t.Errorf("%s: %v, %s", args, err, output)
		}
	}
}

// TestMemory_ReducesDefaults: a memory limit reduces defaults. Flags that are set stay
// unchanged or are rejected.
func TestMemory_ReducesDefaults(t *testing.T) {
	for _, c := range []struct {
		limit string
		args  []string
		want  map[string]string // value and origin by flag
		says  string            // part of the error; "" if the configuration is valid
	}{
		{
			"10GiB", nil,
			map[string]string{"max-aggregates": "32768 memory", "ring-slots": "65536 default"},
			"",
		},
		{
			"200MiB",
			[]string{"--prometheus=off"},
			map[string]string{"max-aggregates": "at least 6000", "max-connections": "256 memory"},
			"",
		},
		{"128MiB", nil, map[string]string{"max-aggregates": "at least 4000"}, ""},
		{"64MiB", nil, map[string]string{"max-aggregates": "at least 2048"}, ""},
		{"128MiB", []string{"--prometheus=off"}, map[string]string{
			"max-aggregates": "at least 5000", "max-connections": "256 memory",
			"drainers": "fixed:1 (1) memory",
		}, ""},
		{
			"128MiB",
			[]string{"--max-aggregates=2000"},
			map[string]string{"max-aggregates": "2000 flag", "label-bytes": "1500KiB memory"},
			"",
		},
		{
			"128MiB",
			[]string{"--label-bytes=2MiB", "--sketch-bytes=3MiB"},
			map[string]string{"label-bytes": "2MiB flag", "sketch-bytes": "3MiB flag"},
			"",
		},
		{"64MiB", []string{"--prometheus=off"}, map[string]string{
			"max-aggregates": "at least 3000", "max-connections": "64 memory",
			"retry-bytes": "8MiB memory",
		}, ""},
		{
			"64MiB",
			[]string{"--apm-socket=/s"},
			map[string]string{"max-aggregates": "at least 3000", "apm-max-body": "128KiB memory"},
			"",
		},
		{"64MiB", []string{"--max-connections=1000"}, nil, "lower --max-connections (connections of "},
		{"30MiB", nil, nil, "GOMEMLIMIT allows 30 MiB"},
	} {
		t.Run(strings.Join(append([]string{c.limit}, c.args...), " "), func(t *testing.T) {
			cmd := program(t, append([]string{"config", "--check"}, c.args...)...)
			cmd.Env = append(cmd.Env, "GOMEMLIMIT="+c.limit)
			out, err := cmd.CombinedOutput()
			if (err != nil) != (c.says != "") || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
			cmd = program(t, append([]string{"config"}, c.args...)...)
			cmd.Env = append(cmd.Env, "GOMEMLIMIT="+c.limit)
			if out, err = cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for flag, want := range c.want {
				line := strings.Join(regexp.MustCompile(`(?m)^--` + flag +
					` +(.*)$`).FindStringSubmatch(string(out))[1:], "")
				got, _, _ := strings.Cut(strings.Join(strings.Fields(line), " "), ",")
				var least, number int
				if n, _ := fmt.Sscanf(want, "at least %d", &least); n == 1 {
					_, _ = fmt.Sscan(got, &number)
				}
				if got != want && (least == 0 || number < least) {
					t.Errorf("--%s is %s, want %s", flag, got, want)
				}
			}
		})
	}
}

// TestReducedDefaults_FitSetFlags: reduced defaults remain large enough for the flags that are set.
func TestReducedDefaults_FitSetFlags(t *testing.T) {
	for _, set := range []string{
		"--max-key-bytes=16777216", "--apm-max-body=2097152",
	} {
		cmd := program(t, "config", "--check", "--drainers=fixed:1", "--apm-socket=/s", set)
		cmd.Env = append(cmd.Env, "GOMEMLIMIT=128MiB")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %s", set, out)
		}
	}
}

// TestMemory_AdviceWorks: if each flag that the error names is halved, the
// configuration fits.
func TestMemory_AdviceWorks(t *testing.T) {
	for _, args := range [][]string{nil, {"--apm-socket=/s"}, {"--max-connections=500"}} {
		for _, limit := range []string{"20MiB", "30MiB"} {
			advised, needed := adviceAt(t, limit, args)
			if len(advised) == 0 {
				t.Errorf("%s %v: nothing is advised", limit, args)
			}
			for _, flag := range advised {
				lower := fmt.Sprintf("--%s=%d", flag, valueAt(t, limit, flag, args)/2)
				if _, then := adviceAt(t, limit, append(args, lower)); then > needed {
					t.Errorf("%s %v: with %s as advised, %d MiB are needed instead of %d", limit, args, lower,
						then, needed)
				}
			}
		}
	}
}

// neededMemory matches an error that contains the total memory of all limits.
var neededMemory = regexp.MustCompile(
	`^spanstatsd: check memory: the daemon may need ([0-9]+) MiB, and .*\n$`)

// adviceAt returns the flags that config --check recommends lowering at a memory limit, and the
// total memory of all limits. It fails if there is another error.
func adviceAt(t *testing.T, limit string, args []string) (flags []string, mebibytes int) {
	t.Helper()
	says := refusal(t, append([]string{"config", "--check"}, args...), "GOMEMLIMIT="+limit)
	parts := neededMemory.FindStringSubmatch(says)
	if parts == nil {
		t.Fatalf("%s %v: %s", limit, args, says)
	}
	for _, flag := range regexp.MustCompile(`--([a-z-]+) \(`).FindAllStringSubmatch(says, -1) {
		flags = append(flags, flag[1])
	}
	mebibytes, err := strconv.Atoi(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	return flags, mebibytes
}

// valueAt returns the value of a flag at a memory limit.
func valueAt(t *testing.T, limit, flag string, args []string) int {
	t.Helper()
	cmd := program(t, append([]string{"config", "--json"}, args...)...)
	cmd.Env = append(cmd.Env, "GOMEMLIMIT="+limit)
	out, err := cmd.Output()
	var settings []status.Setting
	if err != nil || json.Unmarshal(out, &settings) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, s := range settings {
		if s.Name == flag {
			value, err := memory.ParseSize(s.Value)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("no flag %s", flag)
	return 0
}
