package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// Package synctest provides a clock that advances when all goroutines are blocked, but only to
// tests. So this program starts itself as a test, which writes its results to a file.

// measureNames runs a child process that measures the names.
func measureNames() (found names, err error) {
	directory, err := os.MkdirTemp("", "spanstatsd-floods")
	if err != nil {
		return nil, fmt.Errorf("make directory for names: %w", err)
	}
	defer os.RemoveAll(directory)
	file := filepath.Join(directory, "names")
	command := exec.Command("/proc/self/exe", append(os.Args[1:], "-names="+file)...)
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("measure names: %w: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	return found, nil
}

// beTest turns this process into a test that measures each flood at both rates, with one flood
// per processor at a time. It does not return.
func beTest(o *options) {
	var found names
	var mu sync.Mutex
	look := func(t *testing.T) {
		for _, f := range floodings(o) {
			t.Run(fmt.Sprintf("%s %d%% %d", f.Shape, f.Percent, f.Rate), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					k, err := f.run()
					if err != nil {
						t.Fatal(err)
					}
					mu.Lock()
					defer mu.Unlock()
					found = append(found, k)
				})
			})
		}
	}
	write := func(t *testing.T) {
		text, err := json.Marshal(found)
		if err == nil {
			err = os.WriteFile(o.names, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	every := func(_, _ string) (bool, error) { return true, nil }
	testing.Main(every, []testing.InternalTest{{Name: "Look", F: look}, {Name: "Write", F: write}}, nil, nil)
}

func floodings(o *options) (all []flooding) {
	for _, shape := range o.shapes {
		for _, percent := range percents {
			all = append(all, flooding{shape, percent, o.slow})
			if o.fast > 0 && !workload.IsHostile(shape) {
				all = append(all, flooding{shape, percent, o.fast})
			}
		}
	}
	return all
}
