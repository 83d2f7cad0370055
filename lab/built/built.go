// Package built makes the programs of this repository for tests that need them as processes.
//
// A test's TestMain calls Into once, before anything else, and keeps the path. With the race
// detector in the tests it is in the program too, so what the tests drive is watched. Any
// goroutine may call it; what it builds is in the folder that it is given, which is the
// caller's to remove.
package built

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The packages of the programs, below the repository's root.
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

// Plain is Into without the race detector, which takes several times as much memory: for who
// holds a program to its limits.
func Plain(folder, program string) (path string, err error) { return into(folder, program) }

// KillPoints is Plain of a daemon that kills itself where the environment says, see internal/recovery.
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
