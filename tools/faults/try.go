package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// try runs the tests of the faults, folder by folder, and returns "pass" or "fail" for every
// test and subtest that ran, by folder and name. It writes the output of failed tests to out.
func try(root string, faults []fault, out io.Writer) (map[string]string, error) {
	tests := map[string][]string{}
	var folders []string
	for _, f := range faults {
		name, _, _ := strings.Cut(f.test, "/")
		if !slices.Contains(folders, f.folder) {
			folders = append(folders, f.folder)
		}
		if !slices.Contains(tests[f.folder], name) {
			tests[f.folder] = append(tests[f.folder], name)
		}
	}
	results := map[string]string{}
	for _, folder := range folders {
		if err := tryFolder(root, folder, tests[folder], results, out); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// event is a line of go test -json.
type event struct {
	Action, Test, Output string
}

func tryFolder(root, folder string, tests []string, results map[string]string, out io.Writer) error {
	cmd := exec.Command("go", "test", "-json", "-count=1", "-vet=off", "-timeout=10m", "-run",
		"^("+strings.Join(tests, "|")+")$", ".")
	cmd.Dir = filepath.Join(root, folder)
	cmd.Stderr = out
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run tests of %s: %w", folder, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run tests of %s: %w", folder, err)
	}
	printed := map[string]string{}
	for decoder := json.NewDecoder(lines); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return errors.Join(fmt.Errorf("read tests of %s: %w", folder, err), cmd.Process.Kill(),
				cmd.Wait())
		}
		printed[e.Test] += e.Output
		if e.Action == "pass" || e.Action == "fail" {
			results[folder+" "+e.Test] = e.Action
		}
		if e.Action == "fail" {
			fmt.Fprint(out, printed[e.Test])
		}
	}
	for name, text := range printed {
		if name != "" && results[folder+" "+name] == "" {
			fmt.Fprint(out, text) // the test did not end
		}
	}
	var failed *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("run tests of %s: %w", folder, err)
	}
	return nil
}
