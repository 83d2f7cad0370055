package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spf13/cobra"
)

// runsMain is an environment variable that makes the test binary run the program. So tests start
// real processes, with the race detector.
const runsMain = "TEST_RUNS_SPANSTATSD"

func TestMain(m *testing.M) {
	if os.Getenv(runsMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program returns a command that runs the program as a process.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	// The race detector otherwise lets each process sleep for a second at its end.
	cmd.Env = append(os.Environ(), runsMain+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// TestCommandLine_Invalid expects an exit code, one line that explains how to fix the error, and no
// files that remain.
func TestCommandLine_Invalid(t *testing.T) {
	dir := t.TempDir()
	occupied := filepath.Join(dir, "file")
	if err := os.WriteFile(occupied, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	for _, test := range []struct {
		args string
		env  string
		code int
		says string
	}{
		{"run --no-such-flag", "", 2, "unknown flag: --no-such-flag; see spanstatsd run --help"},
		{"dance", "", 2, `unknown command "dance"`},
		{"run now", "", 2, `unknown command "now"`},
		{"run --drainers=many", "", 2, "cpu:1"},
		{"run --drainers=fixed:0", "", 2, "cpu:1"},
		{"run --drainers=fixed:100000", "", 2, "check drainers: 100000 is not between 1 and 1024"},
		{"run --buffer=keep", "", 2, "not one of drop, block"},
		{"run --socket-mode=rw", "", 2, "octal"},
		{"run --agent-url=ftp://x", "", 2, "unknown scheme"},
		{"run --agent-url=off --prometheus=off", "", 2, "there is no other destination"},
		{"run --cardinality-limit=colour=3", "", 2, "field=N"},
		{"run --cardinality-limit=resource", "", 2, "field=N"},
		{"run --retry-age=0s", "", 2, "--retry-age"},
		{"run --log-level=loud", "", 2, "debug, info, warn, error"},
		{"run --log-format=xml", "", 2, "auto, text, json"},
		{"run --flush-interval=soon", "", 2, `"soon" for "--flush-interval" flag`},
		{"run --retry-bytes=12x", "", 2, `--retry-bytes" flag: "12x" is not a size; use`},
		{"run --ring-slots=99999999999999999999", "", 2, "out of range"},
		{"run --conflate-runtimes=perhaps", "", 2, `"perhaps" for "--conflate-runtimes" flag`},
		{"run --ringslots=3", "", 2, "unknown flag: --ringslots"},
		{"run --all", "", 2, "--help"},
		{"run", "SPANSTATSD_RING_SLOTS=lots", 2, `SPANSTATSD_RING_SLOTS: invalid argument "lots"`},
		{"run", "SPANSTATSD_RETRY_BYTES=12x", 2, `"12x" is not a size; use`},
		{"run", "SPANSTATSD_RETRY_AGE=2", 2, `SPANSTATSD_RETRY_AGE: invalid argument "2"`},
		{"run", "SPANSTATSD_BUFFER=keep", 2, `"keep" is not one of drop, block`},
		{"run", "SPANSTATSD_RETRY_BITES=1", 2, "SPANSTATSD_RETRY_BITES: no flag has this name"},
		{"run --socket=" + socket + " --ring-slots=1000", "", 2, "power of two"},
		{"run --socket=" + socket + " --flush-interval=1h", "", 2, "flush-interval"},
		{"run --socket=" + socket + " --ring-slots=128", "", 2, "less than 256"},
		{"run --socket=" + socket + " --retry-bytes=1", "", 2, "retry-bytes"},
		{"run --socket=" + socket + " --shutdown-grace=0s", "", 2, "shutdown-grace"},
		{"run --socket=" + socket + " --http-addr=nowhere:none", "", 2, "http-addr"},
		{"run --socket=" + filepath.Join(dir, "missing", "s"), "", 1, "create the directory"},
		{"run --socket=" + occupied, "", 1, "is not a socket"},
		{"run --socket=/" + strings.Repeat("x", 107), "", 2, "shorter --socket"},
	} {
		cmd := program(t, strings.Fields(test.args)...)
		if test.env != "" {
			cmd.Env = append(cmd.Env, test.env)
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		line := stderr.String()
		if cmd.ProcessState.ExitCode() != test.code || !strings.Contains(line, test.says) ||
			strings.Count(line, "\n") != 1 {
			t.Errorf("%s %s: %v, %q; want code %d and one line with %q", test.env, test.args, err, line,
				test.code, test.says)
		}
	}
	if _, err := os.Lstat(socket); err == nil {
		t.Error("a refused start left its socket")
	}
}

func TestVersionAndHelp(t *testing.T) {
	for args, says := range map[string]string{
		"version": "spanstatsd ", "--help": "status", "run --help": "--socket",
		"run --help --all": "--ring-slots", "--version": "spanstatsd ", "completion bash": "bash",
	} {
		out, err := program(t, strings.Fields(args)...).Output()
		if err != nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v, %q", args, err, out)
		}
	}
}

// TestPrecedence: a flag takes precedence over the environment variable, and the variable over the
// default.
func TestPrecedence(t *testing.T) {
	t.Setenv("SPANSTATSD_RING_SLOTS", "1024")
	t.Setenv("SPANSTATSD_MAX_AGGREGATES", "77")
	t.Setenv("SPANSTATSD_BUFFER", "block")
	t.Setenv("SPANSTATSD_MAX_ORIGINS", "")
	t.Setenv("SPANSTATSD_CARDINALITY_LIMIT", "resource=10,service=5")
	o, cmd := &runOptions{}, &cobra.Command{Use: "run"}
	o.addTo(cmd)
	if err := cmd.ParseFlags([]string{"--ring-slots=2048"}); err != nil {
		t.Fatal(err)
	}
	variables, err := commandline.ApplyEnvironment(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.complete(newSettings(o.flags, variables)); err != nil {
		t.Fatal(err)
	}
	agg := o.config.Aggregate
	if agg.Budgets[span.LabelResource] != 10 || agg.Budgets[span.LabelService] != 5 ||
		agg.Budgets[span.LabelType] != span.LabelType.Budget() {
		t.Errorf("budgets %v", agg.Budgets)
	}
	if agg.RingSlots != 2048 || agg.MaxAggregates != 77 || agg.MaxOrigins != 256 || !o.config.Admit.Block {
		t.Errorf("ring slots %d, aggregates %d, origins %d, block %t", agg.RingSlots, agg.MaxAggregates,
			agg.MaxOrigins, o.config.Admit.Block)
	}
}
