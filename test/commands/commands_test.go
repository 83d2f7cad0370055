package commands

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocuments executes the documents. (README.md is first in alphabetical order.)
func TestDocuments(t *testing.T) {
	newReader(t).run("make build") // as they all take for granted
	pages, isUsed, isDone := documents(t), map[string]bool{}, true
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if len(pages[name]) == 0 {
			continue
		}
		wasRun := false
		t.Run(name, func(t *testing.T) {
			wasRun = true
			r := newReader(t)
			for _, b := range pages[name] {
				r.do(b, isUsed)
			}
		})
		isDone = isDone && wasRun
	}
	for _, e := range elsewhere {
		if isDone && !isUsed[e.pattern] && !t.Failed() {
			t.Errorf("no page has a command of the kind %s any more: take it out of the list", e.pattern)
		}
	}
}

// do executes one block.
func (r *reader) do(b *block, isUsed map[string]bool) {
	r.t.Helper()
	switch b.language {
	case shell:
		for _, command := range b.commands() {
			r.t.Logf("%s: %s", b, command)
			r.enter(command, isUsed)
		}
	case "yaml":
		r.load(b)
	case "promql":
		r.ask(b)
	case "go":
		if !strings.Contains(b.text(), "NewSpanProcessor") { // test/clients compiles and runs this one
			r.compile(b)
		}
	case "text": // a picture
	default:
		r.t.Errorf("%s: no check for a block of %q; add one, or mark the block as text", b, b.language)
	}
}

// enter runs one command.
func (r *reader) enter(command string, isUsed map[string]bool) {
	r.t.Helper()
	for _, e := range elsewhere {
		if regexp.MustCompile(e.pattern).MatchString(command) {
			isUsed[e.pattern] = true
			r.t.Logf("NOT RUN: %s (%s)", command, e.why)
			if e.check != nil {
				e.check(r.t, command)
			}
			return
		}
	}
	switch {
	case variables.MatchString(command):
		r.send(command)
	case regexp.MustCompile(`^(bin/)?spanstatsd run`).MatchString(command):
		r.serve(command)
	case strings.Contains(command, " --watch"):
		r.look(command)
	case regexp.MustCompile(`^(make|(bin/)?spanstatsd|(bin/)?spanstatsd-lab|curl|for) `).MatchString(command):
		r.run(command)
	default:
		r.t.Errorf("%s is neither a command that this test runs nor in its list of those that it can't",
			command)
	}
}
