package structure

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

// limit is one bound that the source keeps.
type limit struct {
	of      string // what is measured
	advice  string // to whoever is beyond it
	measure func(files []*file) []figure
}

// figure is what was measured of one subject: a file, a function, a type or a room.
type figure struct {
	subject   string
	has, most int
}

var limits = []limit{
	{"lines of a file", "give each of its ideas a file", fileLines},
	{"lines of a function", "a function fits a screen", functionLines},
	{"lines that end beyond column 110", "a reader sees two files side by side", wideLines},
	{"methods of a type", "give each of its ideas a type", methods},
	{"fields of a struct", "a struct has one idea; configuration is named so", fields},
	{"references upwards between files", "move what both files need below them", referencesUpwards},
}

// TestTheSourceKeepsItsLimits holds every figure to its limit, without an exception.
func TestTheSourceKeepsItsLimits(t *testing.T) {
	files := readAll(t)
	for _, l := range limits {
		t.Run(l.of, func(t *testing.T) {
			for _, f := range l.measure(files) {
				if f.has > f.most {
					t.Errorf("%s has %d %s, at most %d: %s", f.subject, f.has, l.of, f.most, l.advice)
				}
			}
		})
	}
}

// TestWhatIsBeyondALimitIsFound measures a small source with everything in it.
func TestWhatIsBeyondALimitIsFound(t *testing.T) {
	wide := "// " + strings.Repeat("w", widest-3)
	files := parseAll(
		t,
		"a/top.go", "package a\n\n"+wide+"\nfunc run() {\n\tnew(T).one()\n}\n\nfunc end() {}\n",
		"a/type.go", "package a\n\n"+wide+"w\ntype T[K any] struct {\n\tx, y int\n\tmiddle\n}\n\n"+
			"func (t *T[K]) one() {}\n\nfunc (t T[K]) two() { end() }\n\ntype RunOptions struct{ x, y, z "+
			"int }\n",
		"a/middle.go", "package a\n\ntype middle struct{ of int }\n\n"+
			"func (m middle) with(t *T[int]) { end(); _ = t.of + t.x }\n",
	)
	for _, c := range []struct {
		measure func([]*file) []figure
		want    []figure
	}{
		{fileLines, []figure{{"a/middle.go", 5, 300}, {"a/top.go", 8, 300}, {"a/type.go", 13, 300}}},
		{functionLines, []figure{
			{"a/middle.go: middle.with", 1, 60},
			{"a/top.go: end", 1, 60},
			{"a/top.go: run", 3, 60},
			{"a/type.go: T.one", 1, 60},
			{"a/type.go: T.two", 1, 60},
		}},
		{wideLines, []figure{{"a", 1, 0}}},
		{methods, []figure{{"a: T", 2, 25}, {"a: middle", 1, 25}}},
		{fields, []figure{{"a: T", 3, 20}, {"a: middle", 1, 20}}},
		// top > type, type > middle and type > top, middle > type and middle > top.
		{referencesUpwards, []figure{{"a", 2, 0}}},
	} {
		got := c.measure(files)
		slices.SortFunc(got, func(a, b figure) int { return cmp.Compare(a.subject, b.subject) })
		if !slices.Equal(got, c.want) {
			t.Errorf("measured %v, want %v", got, c.want)
		}
	}
}
