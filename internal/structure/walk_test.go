package structure

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const walkDocument = "docs/architecture.md"

// walks are those of the document, each under its heading, and how long each may be.
var walks = []walk{
	{"## The walk of a span", 35, 20},
	{"## The walk of a body", 45, 25},
	{"## The walk of a request of OTLP", 50, 28},
	{"## The walk of a point", 40, 20},
}

// walk is a section of the document whose steps are held to the code.
type walk struct {
	heading          string
	functions, files int // at most
}

// step is one line of a walk.
type step struct {
	file, function string
	handsOver      bool // the next step is not called by this one or an earlier one
}

var (
	stepLine = regexp.MustCompile("^\\| *[0-9]+[a-z]? *\\| *`([^`]+)` *\\| *`([^`]+)` *\\|(.*)\\|$")
	handOver = regexp.MustCompile(`\((goroutine|ring|channel|callback|interface|timer)\)`)
)

// read returns the steps of the walk in the document, and whether the document has the
// section.
func (w walk) read(document string) (steps []step, is bool) {
	_, section, is := strings.Cut("\n"+document, "\n"+w.heading+"\n")
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

// check holds steps against the source and says what is wrong. A step is called
// by the one before it, or by one further up that has not returned yet. Behind a
// hand-over a new call begins.
func (w walk) check(steps []step, files []*file, wrong func(format string, args ...any)) {
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
				wrong("step %d: neither %s nor a step above it calls %s", i+1, steps[i-1].function,
					s.function)
			}
		}
		running = append(running, function)
	}
	if len(distinct) > w.functions || len(inFiles) > w.files {
		wrong("the walk takes %d functions in %d files, at most %d in %d", len(distinct), len(inFiles),
			w.functions, w.files)
	}
}

func TestTheWalksAreTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, walkDocument))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range walks {
		t.Run(strings.TrimPrefix(w.heading, "## "), func(t *testing.T) {
			steps, is := w.read(string(text))
			if !is {
				t.Fatalf("%s has no section %q", walkDocument, w.heading)
			}
			if len(steps) < 10 {
				t.Fatalf("%d steps were read from the walk in %s; there are more", len(steps), walkDocument)
			}
			w.check(steps, readSource(t), t.Errorf)
		})
	}
}

// TestEveryTableOfStepsIsAWalk finds a section with steps that walks does not name.
func TestEveryTableOfStepsIsAWalk(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, walkDocument))
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, _, _ := strings.Cut(section, "\n")
		w := walk{heading: "## " + heading}
		isKnown := slices.ContainsFunc(walks, func(known walk) bool { return known.heading == w.heading })
		if steps, _ := w.read(string(text)); len(steps) > 0 && !isKnown {
			t.Errorf("%s has steps under %q, which walks does not hold to the code: give it a line there",
				walkDocument, w.heading)
		}
	}
}

func TestAWalkThatIsNotTrueIsFound(t *testing.T) {
	files := parseAll(
		t,
		"a.go", "package a; func (s *S[T]) run() { s.take(); go s.send() }; func (s *S[T]) take() { find() "+
			"}; func find() {}",
		"b.go", "package a; func (s *S[T]) send() { write() }; func write() { end() }; func end() {}",
	)
	const (
		run     = "| 1 | `a.go` | `S.run` | reads |"
		starts  = "| 1 | `a.go` | `S.run` | starts (goroutine) |"
		take    = "| 2 | `a.go` | `(*S).take` | |"
		find    = "| 2a | `a.go` | `find` | |"
		send    = "| 3 | `b.go` | `S.send` | |"
		write   = "| 4 | `b.go` | `write` | |"
		end     = "| 5 | `b.go` | `end` | |"
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
		{run + take + find + send + write + end, "the walk takes 6 functions in 2 files, at most 5 in 2"},
	} {
		w := walk{"## A walk", 5, 2}
		steps, is := w.read("## A walk of another\n" + missing + "\n## A walk\n" +
			strings.ReplaceAll(c.lines, "||", "|\n|") + "\n\n## Next\n" + missing)
		if !is || len(steps) != strings.Count(c.lines, ".go") {
			t.Fatalf("%d steps were read of %s", len(steps), c.lines)
		}
		got := ""
		w.check(steps, files, func(format string, args ...any) { got += fmt.Sprintf(format, args...) })
		if got != c.want {
			t.Errorf("%s\ngave %q, want %q", c.lines, got, c.want)
		}
	}
}
