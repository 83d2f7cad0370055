package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files and returns their directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
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

const budgetHeader = "# directory number\n\n"

// checkTree returns what the check prints, and whether it passes.
func checkTree(t *testing.T, files map[string]string, budget string) (string, bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "budget.txt")
	if err := os.WriteFile(file, []byte(budgetHeader+budget), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := check(&out, tree(t, files), file)
	return out.String(), err == nil
}

func TestCheck_FindsProseOfEachFormat(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       string // start of the hit; empty: none
	}{
		"Go comment over two lines": {"a/a.go", "package a\n\n// F asks. There is a client\n// who waits for it.\nfunc F() {}\n", `a/a.go:4: "who waits"`},
		"Go comment after code":     {"a/a.go", "package a\n\nvar A = 1 // nobody\n", `a/a.go:3: "nobody"`},
		"Go comments of two fields": {"a/a.go", "package a\n\nvar (\n\ta = 1 // what\n\tb = 2 // comes\n)\n", ""},
		"there is no":               {"a/a.md", "If there is no key, the span is dropped.\n", ""},
		"Go block comment":          {"a/a.go", "package a\n\n/* Fine.\nFor nobody. */\n", `a/a.go:4: "nobody"`},
		"text of a flag":            {"a/a.go", "package a\n\nconst help = \"bytes for somebody to read\"\n", `a/a.go:3: "somebody"`},
		"text of a test":            {"a/a_test.go", "package a\n\nconst sent = \"bytes for somebody to read\"\n", ""},
		"identifier":                {"a/a.go", "package a\n\n// F is fine.\nfunc F(anybody int) { _ = `nobody` }\n", ""},
		"good comment":              {"a/a.go", "package a\n\n// F reports whether the client waits.\nfunc F() bool { return true }\n", ""},
		"Java":                      {"a/A.java", "class A {\n    /**\n     * Returns the client.\n     * It is sent anew.\n     */\n}\n", `a/A.java:4: "anew"`},
		"JavaScript":                {"a/a.js", "const nobody = 1; // under way\n", `a/a.js:1: "under way"`},
		"YAML comment":              {"a/a.yaml", "a: 1\n# Of each, the first.\n", `a/a.yaml:2: "Of each"`},
		"alert summary":             {"a/a.yaml", "annotations:\n  summary: The daemon is told.\n", `a/a.yaml:2: "is told"`},
		"document":                  {"a/a.md", "# A\n\nThis says\nwhether it works.\n", `a/a.md:3: "says whether"`},
		"code in a document":        {"a/a.md", "Not `nobody`.\n\n    nobody\n\n```\nnobody\n```\n", ""},
		"shell":                     {"a/a.sh", "echo nobody\n# nobody\n", `a/a.sh:2: "nobody"`},
		"generated file":            {"bin/a.md", "nobody\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, passed := checkTree(t, map[string]string{c.file: c.text}, "")
			if passed != (c.want == "") || !strings.Contains(out, c.want) || strings.Count(out, "\n  ") > 1 {
				t.Errorf("passed: %v, want the hit %q in\n%s", passed, c.want, out)
			}
		})
	}
}

// TestCheck_WantsTheExactBudget: a budget that is too high fails too, so that it falls with the hits.
func TestCheck_WantsTheExactBudget(t *testing.T) {
	files := map[string]string{"a/a.md": "nobody, nobody\n", "b.md": "Fine.\n"}
	for budget, want := range map[string]string{
		"a 2\n":      "",
		"a 1\n":      "a has 2 unidiomatic phrases, and may have 1",
		"a 3\n":      `fewer than its budget of 3: write "a 2"`,
		"a 2\n. 1\n": ". has 0 unidiomatic phrases, fewer than its budget of 1: remove its line",
		"a 2\nc 1\n": "c has 0 unidiomatic phrases, fewer than its budget of 1: remove its line",
	} {
		out, passed := checkTree(t, files, budget)
		if passed != (want == "") || !strings.Contains(out, want) {
			t.Errorf("budget %q: passed: %v, want %q in\n%s", budget, passed, want, out)
		}
	}
}

// TestRules_MatchTheirPhrases: each rule matches its own phrase, so that no rule is dead.
func TestRules_MatchTheirPhrases(t *testing.T) {
	phrases := []string{
		"the one who sends it", "for nobody", "what comes", "says whether", "said of it", "Of each span", "requests of OTLP",
		"by HTTP", "is no number", "where there is", "mended", "goes on", "behind the request", "are told", "stands in",
		"anew", "a newcomer", "sent again", "give way", "keys a connection", "that is away", "under way", "time-out",
		"unlabelled", "has it close",
	}
	if len(phrases) != len(rules) {
		t.Fatalf("%d rules, %d phrases", len(rules), len(phrases))
	}
	for i, rule := range rules {
		if !rule.pattern.MatchString(phrases[i]) {
			t.Errorf("rule %q does not match %q", rule.advice, phrases[i])
		}
	}
}
