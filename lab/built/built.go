// Package built builds the programs of this repository for tests that run them as processes.
//
// A test's TestMain calls Into once, before anything else, and keeps the path. If the tests run
// with the race detector, the built program does too. All functions are safe for concurrent use.
// The caller removes the folder that it passed.
package built

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Packages of the programs, relative to the root of the repository.
const (
	Daemon = "cmd/spanstatsd"
	Lab    = "lab/cmd/spanstatsd-lab"
)

// Into builds a program into a folder and returns its path.
func Into(folder, program string) (path string, err error) {
	if isRaced {
		return into(folder, program, "-race")
	}
	return Plain(folder, program)
}

// Plain is like Into, but never enables the race detector, which uses several times as much
// memory. It is for tests that check a program's memory limits.
func Plain(folder, program string) (path string, err error) { return into(folder, program) }

// KillPoints is like Plain, but builds a daemon that kills itself at a point named by the
// environment; see internal/recovery.
func KillPoints(folder, program string) (path string, err error) {
	return into(folder, program, "-tags=killpoints")
}

func into(folder, program string, flags ...string) (path string, err error) {
	_, here, _, _ := runtime.Caller(0)
	from := filepath.Join(filepath.Dir(here), "../..", program)
	path = filepath.Join(folder, filepath.Base(program))
	build := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), ".")...)
	build.Dir = from
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return path, nil
}
