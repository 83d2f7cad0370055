package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTables_Commits(t *testing.T) {
	got, err := commitsOf(`<!-- make bench-one -->
| a |

*Measured 2026-11-23 09:41 UTC, commit d255e06, go1.26.8, 2 processors, load 2.24 before.*
<!-- end -->
<!-- make bench-one -->
| b |

*Measured 2026-11-23 09:41 UTC, commit d255e06, go1.26.8, 2 processors, load 2.24 before.*
<!-- end -->
<!-- make bench-two -->
<!-- end -->
`)
	if want := []table{{"bench-one", "d255e06"}, {"bench-two", ""}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// TestTables_MeasuredPackagesExist: for each table of the documents, the measured packages are
// listed, and they exist.
func TestTables_MeasuredPackagesExist(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	targets, err := targetsOf(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		of, known := measures[target]
		if !known {
			t.Errorf("no packages are listed for make %s", target)
		}
		for _, folder := range append(slices.Clone(of.packages), of.folders...) {
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				t.Errorf("make %s measures %s: %v", target, folder, err)
			}
		}
	}
}

// TestTables_StaleAfterChange: a table is stale after a change of a package that it
// measures, but not after a change of another package or of tests.
func TestTables_StaleAfterChange(t *testing.T) {
	t.Chdir(t.TempDir())
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{
			"-c", "user.name=a", "-c", "user.email=a@b", "-c",
			"core.hooksPath=/dev/null",
		}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const needed = "internal/ring/ring.go"
	write("go.mod", "module github.com/spanstatsd/spanstatsd\n\ngo 1.26.0\n")
	write("client/client.go", "package client\n")
	write("internal/ingest/ingest.go", "package ingest\n\nimport _ "+
		"\"github.com/spanstatsd/spanstatsd/internal/ring\"\n")
	write(needed, "package ring\n")
	write("internal/health/health.go", "package health\n")
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "measured")
	of := table{"bench-ingest", git("rev-parse", "--short", "HEAD")}
	for _, c := range []struct{ file, why string }{
		{"internal/ring/ring_test.go", ""},
		{"internal/health/health.go", ""},
		{"README.md", ""},
		{needed, "internal/ring"},
		{"client/more.go", "client, internal/ring"},
	} {
		folder := filepath.Base(filepath.Dir(c.file))
		write(c.file, "package "+folder+"\n\n// changed\n")
		git("add", "-A")
		git("commit", "-q", "-m", "changed")
		if why, err := of.changes(); err != nil || why != c.why {
			t.Errorf("%s was changed: %q, %v; want %q", c.file, why, err, c.why)
		}
	}
	if why, err := (table{"bench-ingest", "0123456"}).changes(); err != nil ||
		!strings.Contains(why, "not in this repository") {
		t.Errorf("of an unknown commit: %q, %v", why, err)
	}
	if _, err := (table{"bench-unheard-of", of.commit}).changes(); err == nil {
		t.Error("an unlisted target passes")
	}
}
