package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
)

// TestManualPages: each command in help has a manual page.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if err := commandline.WritePages(newRootCommand(), dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run", "status", "doctor", "plan", "slo", "config", "dump", "prepare", "wait", "version"} {
		if _, err := os.Stat(filepath.Join(dir, "spanstatsd-"+name+".1")); err != nil {
			t.Error(err)
		}
	}
}

// TestPrepare creates a directory, and changes its owner if the test runs with the privileges for
// it.
func TestPrepare(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	owner := "0:0"
	if os.Getuid() != 0 {
		owner = ""
	}
	out, err := program(t, "prepare", "--socket", filepath.Join(dir, "s"), "--directory-mode", "0711",
		"--directory-owner", owner).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("%v, %v", info, err)
	}
	out, err = program(t, "prepare", "--directory-owner", "nobody").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "UID:GID") {
		t.Errorf("a name as owner: %v, %s", err, out)
	}
}
