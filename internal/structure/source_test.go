package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the repository's directory.
const root = "../.."

// module is how its packages are imported.
const module = "github.com/spanstatsd/spanstatsd/"

// file is one Go file that is no test.
type file struct {
	path   string // from the root, with slashes
	text   string
	syntax *ast.File
	tokens *token.File
	set    *token.FileSet
}

// room is the directory of a package.
func (f *file) room() string { return f.path[:strings.LastIndex(f.path, "/")] }

// lines is how many lines a node takes.
func (f *file) lines(n ast.Node) int { return f.tokens.Line(n.End()-1) - f.tokens.Line(n.Pos()) + 1 }

// functions are the file's functions and methods by name, a method as type.name.
func (f *file) functions() map[string]*ast.FuncDecl {
	byName := map[string]*ast.FuncDecl{}
	for _, d := range f.syntax.Decls {
		function, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		name := function.Name.Name
		if function.Recv != nil {
			name = receiver(function.Recv.List[0].Type) + "." + name
		}
		byName[name] = function
	}
	return byName
}

// receiver is the name of a method's type, without pointer and type parameters.
func receiver(of ast.Expr) string {
	switch t := of.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// sourceDirs are where our source is. The lab is a module of its own, which no walk leads
// through, but it keeps the same limits and has a table of rooms.
var sourceDirs = []string{"client", "cmd", "internal", labDir}

const labDir = "lab"

// source reads all files once.
var source = sync.OnceValues(func() (files []*file, err error) {
	set := token.NewFileSet()
	for _, dir := range sourceDirs {
		err = filepath.WalkDir(filepath.Join(root, dir),
			func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") ||
					strings.HasSuffix(path, "_test.go") {
					return err
				}
				from, err := filepath.Rel(root, path)
				if err != nil {
					return err
				}
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				f, err := parse(set, filepath.ToSlash(from), string(text))
				files = append(files, f)
				return err
			})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
})

func parse(set *token.FileSet, path, text string) (*file, error) {
	syntax, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{path, text, syntax, set.File(syntax.FileStart), set}, nil
}

// readAll returns all files of ours.
func readAll(t *testing.T) []*file {
	t.Helper()
	files, err := source()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("%d files were found in %s; there are more", len(files), root)
	}
	return files
}

// readSource returns those of the daemon's module.
func readSource(t *testing.T) []*file {
	t.Helper()
	isLab := func(f *file) bool { return strings.HasPrefix(f.path, labDir+"/") }
	return slices.DeleteFunc(slices.Clone(readAll(t)), isLab)
}

// parseAll parses texts by their paths, which are in order.
func parseAll(t *testing.T, texts ...string) (files []*file) {
	t.Helper()
	set := token.NewFileSet()
	for i := 0; i < len(texts); i += 2 {
		f, err := parse(set, texts[i], texts[i+1])
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
