package program

import (
	"os"
	"os/exec"
	"testing"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// Binaries, built once.
var daemonProgram, labProgram string

func TestMain(m *testing.M) { os.Exit(testsWithPrograms(m)) }

func testsWithPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "daemon")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if daemonProgram, err = built.Into(dir, built.Daemon); err != nil {
		panic(err)
	}
	if labProgram, err = built.Into(dir, built.Lab); err != nil {
		panic(err)
	}
	return m.Run()
}

// program returns a command of the daemon, not started yet.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(daemonProgram, args...)
	// Without this, the race detector makes each process sleep for a second at its end.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	return cmd
}
