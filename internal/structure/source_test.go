package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
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
	syntax *ast.File
	tokens *token.File
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

// source reads all files once.
var source = sync.OnceValues(func() (files []*file, err error) {
	set := token.NewFileSet()
	for _, dir := range []string{"client", "cmd", "internal"} {
		err = filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			syntax, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			from, err := filepath.Rel(root, path)
			files = append(files, &file{filepath.ToSlash(from), syntax, set.File(syntax.FileStart)})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
})

func readSource(t *testing.T) []*file {
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
