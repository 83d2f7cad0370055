package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
)

// trial runs tests with changed files. Any goroutine may try a change.
type trial struct {
	root    string
	scratch string // for overlays

	mu       sync.Mutex
	baseline map[string]func() error // whether tests pass without a change, asked once
}

func newTrial(root string) (*trial, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("find root: %w", err)
	}
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, fmt.Errorf("make a folder for changed files: %w", err)
	}
	return &trial{root: root, scratch: scratch, baseline: map[string]func() error{}}, nil
}

func (t *trial) close() { os.RemoveAll(t.scratch) }

// try returns what noticed the change, or nothing if it survived.
func (t *trial) try(m mutant) (killer string, err error) {
	args := m.testArgs()
	if err := t.passes(args); err != nil {
		return "", err
	}
	overlay, err := t.overlay(m)
	if err != nil {
		return "", err
	}
	out, err := t.goCommand(append([]string{"test", overlay}, args[1:]...)...)
	var failed *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case notBuilt.Match(out):
		return "", fmt.Errorf("the change does not compile: %w\n%s", err, out)
	case errors.As(err, &failed):
		return nameOf(out), nil
	}
	return "", fmt.Errorf("run tests: %w", err)
}

// passes has an error where the tests fail without a change.
func (t *trial) passes(args []string) error {
	t.mu.Lock()
	key := fmt.Sprint(args)
	ask := t.baseline[key]
	if ask == nil {
		ask = sync.OnceValue(func() error {
			if out, err := t.goCommand(args...); err != nil {
				return fmt.Errorf("the tests fail without the change: %w\n%s", err, out)
			}
			return nil
		})
		t.baseline[key] = ask
	}
	t.mu.Unlock()
	return ask()
}

// testArgs is a command whose time is bounded: a change may make a test wait for ever.
func (m *mutant) testArgs() []string {
	args := []string{"test", "-vet=off", "-timeout=60s", "-ldflags=-s -w"} // which links faster
	if m.race {
		args = append(args, "-race")
	}
	if m.run != "" {
		args = append(args, "-run", m.run)
	}
	return append(args, m.tests...)
}

// overlay has the go command read the changed file instead of the tree's.
func (t *trial) overlay(m mutant) (flag string, err error) {
	scratch, err := os.MkdirTemp(t.scratch, "change")
	if err != nil {
		return "", fmt.Errorf("make a folder for a changed file: %w", err)
	}
	changed := filepath.Join(scratch, "changed.go")
	if err := os.WriteFile(changed, []byte(m.source), 0o600); err != nil {
		return "", fmt.Errorf("write changed file: %w", err)
	}
	replace := map[string]map[string]string{"Replace": {filepath.Join(t.root, m.file): changed}}
	text, err := json.Marshal(replace)
	if err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	overlay := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	return "-overlay=" + overlay, nil
}

func (t *trial) goCommand(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = t.root
	return cmd.CombinedOutput()
}

var (
	notBuilt   = regexp.MustCompile(`(?m)^FAIL\s+\S+ \[(build|setup) failed\]$`)
	failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)
	otherEnd   = regexp.MustCompile(`(?m)^(panic: test timed out|panic: .*|` +
		`fatal error: .*|WARNING: DATA RACE)`)
)

// nameOf says which test failed, or how the tests ended.
func nameOf(out []byte) string {
	if name := failedTest.FindSubmatch(out); name != nil {
		return string(name[1])
	}
	if end := otherEnd.Find(out); end != nil {
		return string(end)
	}
	return "the tests' process"
}
