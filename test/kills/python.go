package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
)

// maxPythonRate is the maximum number of spans per second of the Python client, which leaves processor
// time for the other clients.
const maxPythonRate = 5000

var errNoPython = errors.New("bin/python-client is missing; run make test-python-client")

// pythonCommand returns the interpreter that has the Python client, and the program that publishes
// with it.
func pythonCommand() ([]string, error) {
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Dir(here)
	interpreter := filepath.Join(dir, "../../bin/python-client/venv/bin/python")
	if exec.Command(interpreter, "-c", "import spanstatsd_opentelemetry").Run() != nil {
		return nil, errNoPython
	}
	return []string{interpreter, filepath.Join(dir, "python/publisher.py")}, nil
}

// publishPython publishes with the Python client, in a separate process.
func (e *episode) publishPython(ctx context.Context, a *account, rate int) error {
	return e.publishProcess(ctx, a, min(rate, maxPythonRate), e.python...)
}
