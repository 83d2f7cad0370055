package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every change of the project's own lists fits the code of today, and there are at least
// as many as were promised.
func TestTheListsFitTheCode(t *testing.T) {
	mutants, err := readLists("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 40 {
		t.Errorf("%d changes, want at least 40", len(mutants))
	}
}

// module writes a module with one function, its test, and a list.
func module(t *testing.T, test, list string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.26\n",
		"max.go": "package m\n\nfunc Max(a, b int) int {\n\tif a > b {\n\t\treturn a\n\t}\n\treturn " +
			"b\n}\n",
		"max_test.go": "package m\n\nimport \"testing\"\n\n" + test,
		listName:      list,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	good = "func TestMax(t *testing.T) {\n\tif Max(2, 1) != 2 || Max(1, 2) != 2 {\n\t\tt.Fail()\n\t}\n}\n"
	weak = "func TestMax(t *testing.T) {\n\tif Max(2, 2) != 2 {\n\t\tt.Fail()\n\t}\n}\n"
	list = "# of two numbers\n\nmax.go: the larger wins\n- if a > b {\n- return a\n+ if a < b {\n+ return a\n"
)

// A change that a test notices is named with that test; one that none notices fails the
// run; and the tree stays as it was.
func TestAChangeSurvivesOnlyWeakTests(t *testing.T) {
	var out strings.Builder
	if err := run(module(t, good, list), "", false, &out); err != nil ||
		!strings.Contains(out.String(), "TestMax") {
		t.Errorf("with a good test: %v\n%s", err, out.String())
	}
	root := module(t, weak, list)
	before, _ := os.ReadFile(filepath.Join(root, "max.go"))
	if err := run(root, "", false, &out); !errors.Is(err, errSurvived) ||
		!strings.Contains(out.String(), "SURVIVED") {
		t.Errorf("with a weak test: %v\n%s", err, out.String())
	}
	if after, _ := os.ReadFile(filepath.Join(root, "max.go")); string(after) != string(before) {
		t.Error("the tree was written")
	}
}

// A list that proves nothing is an error of its own, and is not taken for a kill.
func TestAWrongListIsRefused(t *testing.T) {
	for what, c := range map[string]struct{ test, list, want string }{
		"the text is not there":   {good, "max.go: x\n- a >= b\n+ a\n", "want it once"},
		"the text is there twice": {good, "max.go: x\n- return\n+ a\n", "want it once"},
		"nothing changes":         {good, "max.go: x\n- a > b\n+ a > b\n", "changes nothing"},
		"it does not compile":     {good, "max.go: x\n- a > b\n+ a > c\n", "does not compile"},
		"the tests fail without it": {
			strings.Replace(good, "!= 2", "== 2", 1), list,
			"fail without the change",
		},
		"a line that is no instruction": {
			good, "max.go: x\n- a > b\n+ a < b\nrace detector\n",
			"unknown line",
		},
		"no list at all": {good, "# nothing yet\n", "no mutants.txt"},
	} {
		t.Run(what, func(t *testing.T) {
			var out strings.Builder
			err := run(module(t, c.test, c.list), "", false, &out)
			if err == nil || errors.Is(err, errSurvived) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, want %q", err, c.want)
			}
		})
	}
}
