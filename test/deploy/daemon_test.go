package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the daemon as released, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "td")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "spanstatsd")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -X main.version=test", "-o", binary, "./cmd/spanstatsd")
	build.Dir, build.Stderr = "../..", os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the daemon:", err)
		return 1
	}
	return m.Run()
}

// daemonHelp returns the daemon's help for a command line, including every flag. The daemon must accept
// the command line.
func daemonHelp(t *testing.T, args ...string) string {
	t.Helper()
	args = append(args, "--help")
	if args[0] == "run" {
		args = append(args, "--all")
	}
	out, err := exec.Command(binary, args...).CombinedOutput()
	if err != nil {
		t.Errorf("spanstatsd %v: %v, %s", args, err, out)
	}
	return string(out)
}
