package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestList_MatchesTests: the document lists the promised number of faults without duplicates,
// and each of them names an existing test.
func TestList_MatchesTests(t *testing.T) {
	faults, err := readFaults("../..", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) < 60 {
		t.Errorf("%d faults, want at least 60", len(faults))
	}
	seen := map[string]bool{}
	for _, f := range faults {
		if seen[f.key()+f.what] {
			t.Errorf("%s is listed twice", f.what)
		}
		seen[f.key()+f.what] = true
		name, _, _ := strings.Cut(f.test, "/")
		if !hasTest(t, filepath.Join("../..", f.folder), name) {
			t.Errorf("%s: %s has no test %s", f.what, f.folder, name)
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range syntax.Decls {
			if function, ok := declared.(*ast.FuncDecl); ok && function.Name.Name == name {
				return true
			}
		}
	}
	return false
}

// repository creates a repository whose package has a passing test, a failing test, and
// subtests.
func repository(t *testing.T, rows string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example.org/m\n\ngo 1.26\n",
		"docs/faults.md": "# Faults\n\n| fault | promise | test |\n| --- | --- | --- |\n" + rows,
		"room/it.go":     "package room\n",
		"room/it_test.go": "package room\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) { t.Run(\"a " +
			"b\", func(t *testing.T) {}) }\n\nfunc TestBad(t *testing.T) { t.Error(\"it broke\") }\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const goodRow = "| a fault | a promise | `room TestGood/a_b` |\n"

// TestVerdicts: a passed, a failed and a missing test each get their verdict.
// The command succeeds only if all tests passed.
func TestVerdicts(t *testing.T) {
	for what, c := range map[string]struct {
		rows, want string
		broken     bool
	}{
		"held":      {goodRow, "1 of 1 promises held", false},
		"broken":    {goodRow + "| f | p | `room TestBad` |\n", "BROKEN: TestBad", true},
		"not tried": {goodRow + "| f | p | `room TestGood/other` |\n", "NOT TRIED: TestGood/other", true},
	} {
		var out strings.Builder
		err := run(repository(t, c.rows), "", &out)
		if errors.Is(err, errBroken) != c.broken || !c.broken && err != nil ||
			!strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v\n%s", what, err, out.String())
		}
		if c.want == "BROKEN: TestBad" && !strings.Contains(out.String(), "it broke") {
			t.Errorf("%s: what the test printed is missing:\n%s", what, out.String())
		}
	}
}

// TestList_InvalidIsRejected: an invalid list is an error with its own exit code.
func TestList_InvalidIsRejected(t *testing.T) {
	for _, rows := range []string{"", "| only | two |\n", "| f | p | `TestWithoutFolder` |\n"} {
		var out strings.Builder
		if err := run(repository(t, rows), "", &out); err == nil || errors.Is(err, errBroken) {
			t.Errorf("%q: %v", rows, err)
		}
	}
}
