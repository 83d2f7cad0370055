package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// runsMain is the environment variable that makes the test binary run the program instead of the
// tests. So the tests use a real process, with the race detector if it is enabled.
const runsMain = "TEST_RUNS_SPANSTATSD_LAB"

// daemonProgram is the path of the daemon's program, built once.
var daemonProgram string

func TestMain(m *testing.M) {
	if os.Getenv(runsMain) != "" {
		main()
	}
	os.Exit(testsWithADaemon(m))
}

func testsWithADaemon(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if daemonProgram, err = built.Into(dir, built.Daemon); err != nil {
		panic(err)
	}
	return m.Run()
}

// program returns a command line of this program as a process that is not started yet. bench
// finds the daemon's program in PATH.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	// Without this the race detector delays the end of each process by a second.
	cmd.Env = append(os.Environ(), runsMain+"=1", "GORACE=atexit_sleep_ms=0",
		"PATH="+filepath.Dir(daemonProgram)+":"+os.Getenv("PATH"))
	return cmd
}

func TestVersionAndHelp(t *testing.T) {
	for args, says := range map[string]string{
		"version":         "spanstatsd-lab ",
		"--version":       "spanstatsd-lab ",
		"--help":          "check-client",
		"bench --help":    "--workload",
		"completion bash": "bash",
	} {
		out, err := program(t, strings.Fields(args)...).Output()
		if err != nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v, %q", args, err, out)
		}
	}
}

func TestCommandLine_Invalid(t *testing.T) {
	for args, says := range map[string]string{
		"dance":                      `unknown command "dance"`,
		"bench --no-such-flag":       "unknown flag: --no-such-flag; see spanstatsd-lab bench --help",
		"demo --rate=0":              "--rate",
		"demo --for=-1s":             "--for",
		"demo --destination=nowhere": "--destination",
		"demo --log-level=loud":      "--log-level",
		"version now":                `unknown command "now"`,
		"demo no":                    `unknown command "no"`,
		"demo --rate=none":           "--rate",
		"bench --rate=none":          "--rate",
		"bench tracer no":            `unknown command "no"`,
		"check-client no":            `unknown command "no"`,
	} {
		cmd := program(t, strings.Fields(args)...)
		out, _ := cmd.CombinedOutput() // the exit code is checked below
		if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), says) ||
			strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: code %d, %q; want one line with %q", args, cmd.ProcessState.ExitCode(), out, says)
		}
	}
}

// TestManualPages: each command listed by help has a manual page.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if out, err := program(t, "man", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{
		"", "-bench", "-bench-all", "-bench-rates", "-bench-scale", "-bench-traces",
		"-demo", "-check-client",
	} {
		page, err := os.ReadFile(filepath.Join(dir, "spanstatsd-lab"+name+".1"))
		if err != nil || strings.Contains(string(page), "Environment:") {
			t.Errorf("%v: %s", err, page)
		}
	}
	if page, _ := os.ReadFile(filepath.Join(dir, "spanstatsd-lab-bench.1")); !strings.Contains(string(page),
		`\-\-workload`) {
		t.Errorf("--workload is not on the page of bench: %s", page)
	}
}
