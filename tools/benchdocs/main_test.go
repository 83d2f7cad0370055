package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const document = `# Figures

<!-- make bench-one -->
| old |
<!-- end -->
between
<!-- make bench-two -->
<!-- end -->
<!-- make bench-one -->
older
<!-- end -->
`

func TestReplace(t *testing.T) {
	targets, err := targetsOf(document)
	if err != nil || !slices.Equal(targets, []string{"bench-one", "bench-two"}) {
		t.Fatalf("%q, %v", targets, err)
	}
	got, err := replace(document, "bench-one", []string{"| a |\n", "| b |\n"}, "then")
	want := strings.NewReplacer("| old |\n", "| a |\n\n*then*\n", "older\n",
		"| b |\n\n*then*\n").Replace(document)
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	if again, err := replace(got, "bench-one", []string{"| old |\n", "older\n"}, "then"); err != nil ||
		strings.Contains(again, "| a |") {
		t.Errorf("the written tables can't be replaced: %v\n%s", err, again)
	}
	for _, tables := range [][]string{nil, {"| a |\n"}, {"| a |\n", "| b |\n", "| c |\n"}} {
		if _, err := replace(document, "bench-one", tables, "then"); err == nil {
			t.Errorf("%d tables fit into two places", len(tables))
		}
	}
}

func TestMarkers_OutOfOrder(t *testing.T) {
	for _, text := range []string{
		"<!-- end -->\n", "<!-- make a -->\n",
		"<!-- make a -->\n<!-- make b -->\n<!-- end -->\n",
	} {
		if targets, err := targetsOf(text); err == nil {
			t.Errorf("%q has the targets %q", text, targets)
		}
	}
}

func TestTables(t *testing.T) {
	got := tablesOf(`go run ./x
| a    | b  |
| ---  | -- |
| 1    |    |

a line
goos: linux
BenchmarkSnapshot/stable/whole-2   	     114	         0 allocs	        65.92 cpu-ns
BenchmarkSnapshot/pool/whole-2     	     114	         1 allocs	        70 cpu-ns
BenchmarkBody/v0.4/ours-2          	     114	        12 cpu-ns/span
BenchmarkBin                       	     355	        15.11 library-ns/span
PASS
| c |
`)
	want := []string{
		"| a | b |\n| --- | -- |\n| 1 | |\n",
		"| | | allocs | cpu-ns |\n| --- | --- | --- | --- |\n| stable | whole | 0 | 65.92 |\n| pool | " +
			"whole | 1 | 70 |\n",
		"| | | cpu-ns/span |\n| --- | --- | --- |\n| v0.4 | ours | 12 |\n",
		"| | library-ns/span |\n| --- | --- |\n| Bin | 15.11 |\n",
		"| c |\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestDocuments: the targets in the documents exist in the Makefile.
func TestDocuments(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]int{"benchmarks.md": 5, "pod.md": 1, "comparison.md": 1, "design/dd-java-agent.md": 1} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		targets, err := targetsOf(string(text))
		if err != nil || len(targets) < least {
			t.Fatalf("%s: %q, %v", name, targets, err)
		}
		for _, target := range targets {
			if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
				t.Errorf("%s wants make %s, which there is not", name, target)
			}
		}
	}
}
