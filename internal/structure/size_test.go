package structure

import "testing"

const (
	mostFileLines     = 300
	mostFunctionLines = 60
)

func TestNoFileHasMoreThan300Lines(t *testing.T) {
	for _, f := range readSource(t) {
		if lines := f.tokens.LineCount(); lines > mostFileLines {
			t.Errorf("%s has %d lines, at most %d: give each of its ideas a file", f.path, lines, mostFileLines)
		}
	}
}

func TestNoFunctionHasMoreThan60Lines(t *testing.T) {
	for _, f := range readSource(t) {
		for name, function := range f.functions() {
			if lines := f.lines(function); lines > mostFunctionLines {
				t.Errorf("%s: %s has %d lines, at most %d: a function fits a screen", f.path, name, lines, mostFunctionLines)
			}
		}
	}
}
