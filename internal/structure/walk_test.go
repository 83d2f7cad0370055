package structure

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	walkDocument  = "docs/architecture.md"
	walkHeading   = "## The walk of a span\n"
	mostFunctions = 35
	mostFiles     = 20
)

// step is one line of the walk.
type step struct {
	file, function string
	handsOver      bool // the next step is not called by this one or an earlier one
}

var (
	stepLine = regexp.MustCompile("^\\| *[0-9]+[a-z]? *\\| *`([^`]+)` *\\| *`([^`]+)` *\\|(.*)\\|$")
	handOver = regexp.MustCompile(`\((goroutine|ring|channel|callback|interface|timer)\)`)
)

// readWalk returns the steps of the walk in the document, and whether the document
// has the section.
func readWalk(document string) (steps []step, is bool) {
	_, section, is := strings.Cut(document, walkHeading)
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if found := stepLine.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			function := strings.NewReplacer("(", "", ")", "", "*", "").Replace(found[2])
			steps = append(steps, step{found[1], function, handOver.MatchString(found[3])})
		}
	}
	return steps, is
}

// calls says whether a function's body names a function or method.
func calls(function *ast.FuncDecl, name string) (does bool) {
	name = name[strings.LastIndex(name, ".")+1:]
	ast.Inspect(function.Body, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is && id.Name == name {
			does = true
		}
		return !does
	})
	return does
}

// checkWalk holds steps against the source and says what is wrong. A step is called
// by the one before it, or by one further up that has not returned yet. Behind a
// hand-over a new call begins.
func checkWalk(steps []step, files []*file, wrong func(format string, args ...any)) {
	functions := map[string]*ast.FuncDecl{}
	for _, f := range files {
		for name, function := range f.functions() {
			functions[f.path+" "+name] = function
		}
	}
	distinct, inFiles := map[*ast.FuncDecl]bool{}, map[string]bool{}
	var running []*ast.FuncDecl // that have not returned, the innermost last
	for i, s := range steps {
		function := functions[s.file+" "+s.function]
		if function == nil {
			wrong("step %d: there is no %s in %s", i+1, s.function, s.file)
			return
		}
		distinct[function], inFiles[s.file] = true, true
		if i > 0 && steps[i-1].handsOver {
			running = nil
		} else if i > 0 {
			for len(running) > 0 && !calls(running[len(running)-1], s.function) {
				running = running[:len(running)-1]
			}
			if len(running) == 0 {
				wrong("step %d: neither %s nor a step above it calls %s", i+1, steps[i-1].function, s.function)
			}
		}
		running = append(running, function)
	}
	if len(distinct) > mostFunctions || len(inFiles) > mostFiles {
		wrong("the walk takes %d functions in %d files, at most %d in %d", len(distinct), len(inFiles), mostFunctions, mostFiles)
	}
}

func TestTheWalkOfASpanIsTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, walkDocument))
	if err != nil {
		t.Fatal(err)
	}
	steps, is := readWalk(string(text))
	if !is {
		t.Fatalf("%s has no section %q", walkDocument, strings.TrimSpace(walkHeading))
	}
	if len(steps) < 10 {
		t.Fatalf("%d steps were read from the walk in %s; there are more", len(steps), walkDocument)
	}
	checkWalk(steps, readSource(t), t.Errorf)
}

func TestAWalkThatIsNotTrueIsFound(t *testing.T) {
	files := []*file{
		parse(t, "a.go", "package a; func (s *S[T]) run() { s.take(); go s.send() }; func (s *S[T]) take() { find() }; func find() {}"),
		parse(t, "b.go", "package a; func (s *S[T]) send() { write() }; func write() {}; func unused() {}"),
	}
	const (
		run     = "| 1 | `a.go` | `S.run` | reads |"
		starts  = "| 1 | `a.go` | `S.run` | starts (goroutine) |"
		take    = "| 2 | `a.go` | `(*S).take` | |"
		find    = "| 2a | `a.go` | `find` | |"
		send    = "| 3 | `b.go` | `S.send` | |"
		write   = "| 4 | `b.go` | `write` | |"
		missing = "| 5 | `a.go` | `write` | |"
	)
	for _, c := range []struct{ lines, want string }{
		{run + take + find + send + write, ""},
		{run + find, "step 2: neither S.run nor a step above it calls find"},
		{run + take + send + find, "step 4: neither S.send nor a step above it calls find"},
		{run + write, "step 2: neither S.run nor a step above it calls write"},
		{starts + write, ""},
		{starts + send + take, "step 3: neither S.send nor a step above it calls S.take"},
		{run + missing, "step 2: there is no write in a.go"},
	} {
		steps, is := readWalk(walkHeading + strings.ReplaceAll(c.lines, "||", "|\n|") + "\n\n## Next\n" + missing)
		if !is || len(steps) != strings.Count(c.lines, ".go") {
			t.Fatalf("%d steps were read of %s", len(steps), c.lines)
		}
		got := ""
		checkWalk(steps, files, func(format string, args ...any) { got += fmt.Sprintf(format, args...) })
		if got != c.want {
			t.Errorf("%s\ngave %q, want %q", c.lines, got, c.want)
		}
	}
}

func parse(t *testing.T, path, text string) *file {
	t.Helper()
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return &file{path, syntax, set.File(syntax.FileStart)}
}
