package structure

import (
	"go/ast"
	"slices"
	"strings"
)

const (
	widest = 110 // columns
	// tabColumns is how many columns a tab takes.
	tabColumns = 4
)

func fileLines(files []*file) (all []figure) {
	for _, f := range files {
		all = append(all, figure{f.path, f.tokens.LineCount(), 300})
	}
	return all
}

func functionLines(files []*file) (all []figure) {
	for _, f := range files {
		for name, function := range f.functions() {
			all = append(all, figure{f.path + ": " + name, f.lines(function), 60})
		}
	}
	return all
}

// wideLines counts, of each room, the lines that are wider than a line may be.
func wideLines(files []*file) []figure {
	wide := map[string]int{}
	for _, f := range files {
		wide[f.room()] += 0
		for line := range strings.Lines(f.text) {
			if columns(strings.TrimRight(line, "\r\n")) > widest {
				wide[f.room()]++
			}
		}
	}
	return figures(wide, 0)
}

func columns(line string) (n int) {
	for _, letter := range line {
		n++
		if letter == '\t' {
			n += tabColumns - 1
		}
	}
	return n
}

// methods counts those of each type that has any.
func methods(files []*file) []figure {
	byType := map[string]int{}
	for _, f := range files {
		for name := range f.functions() {
			if of, _, is := strings.Cut(name, "."); is {
				byType[f.room()+": "+of]++
			}
		}
	}
	return figures(byType, 25)
}

// fields counts those of each struct that is no configuration. An embedded type is one.
func fields(files []*file) []figure {
	byType := map[string]int{}
	for _, f := range files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			declared, is := n.(*ast.TypeSpec)
			if !is || isConfiguration(declared.Name.Name) {
				return true
			}
			if of, is := declared.Type.(*ast.StructType); is {
				for _, field := range of.Fields.List {
					byType[f.room()+": "+declared.Name.Name] += max(1, len(field.Names))
				}
			}
			return true
		})
	}
	return figures(byType, 20)
}

// isConfiguration says whether a type is what its user fills in and hands over: it is
// called Config, Options, Settings or Variables, or ends so.
func isConfiguration(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"config", "options", "settings", "variables"}, func(end string) bool {
		return strings.HasSuffix(name, end)
	})
}

// figures are those of a limit that is the same for all.
func figures(has map[string]int, most int) (all []figure) {
	for subject, n := range has {
		all = append(all, figure{subject, n, most})
	}
	return all
}
