package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestManualPages: each command that help shows has a page, and each of run's
// flags a place on it with its variable.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if err := writePages(newRootCommand(), dir); err != nil {
		t.Fatal(err)
	}
	for _, below := range documented(newRootCommand()) {
		if _, err := os.Stat(filepath.Join(dir, "spanstatsd-"+below.Name()+".1")); err != nil {
			t.Error(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "spanstatsd-run.1"))
	if err != nil {
		t.Fatal(err)
	}
	newRunCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(string(page), ".B "+escape("--"+f.Name)) || !strings.Contains(string(page), environmentName(f.Name)) {
			t.Errorf("--%s or its variable is not on the page of run", f.Name)
		}
	})
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"a-b": `a\-b`, ".TH\n'x\ny": "\\&.TH\n\\&'x\ny", `\n`: `\en`,
	} {
		if got := escape(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestPrepare makes a directory, and gives it away where the test may.
func TestPrepare(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	owner := "0:0"
	if os.Getuid() != 0 {
		owner = ""
	}
	out, err := program(t, "prepare", "--socket", filepath.Join(dir, "s"), "--directory-mode", "0711", "--directory-owner", owner).CombinedOutput()
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
