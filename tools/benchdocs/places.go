package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// begin and end are the lines that enclose a table.
var begin = regexp.MustCompile(`^<!-- make ([a-z-]+) -->$`)

const end = "<!-- end -->"

// targetsOf returns the distinct targets of a document.
func targetsOf(text string) (targets []string, err error) {
	err = places(text, func(target string, _ []string) {
		if !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}, func(string) {})
	return targets, err
}

// places iterates over a document: it calls place with each enclosed table, and other with
// every other line.
func places(text string, place func(target string, old []string), other func(line string)) error {
	target, old := "", []string(nil)
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		found := begin.FindStringSubmatch(bare)
		switch {
		case target == "" && found != nil:
			target, old = found[1], nil
		case target == "" && bare == end || target != "" && found != nil:
			return fmt.Errorf("read document: %q is misplaced", bare)
		case target == "":
			other(line)
		case bare == end:
			place(target, old)
			target = ""
		default:
			old = append(old, line)
		}
	}
	if target != "" {
		return fmt.Errorf("read document: the place for %s has no end", target)
	}
	return nil
}

// replace puts a target's tables into its places, each with a note on how it was measured.
func replace(text, target string, tables []string, note string) (string, error) {
	var b strings.Builder
	next := 0
	err := places(text, func(t string, old []string) {
		fmt.Fprintf(&b, "<!-- make %s -->\n", t)
		if t != target {
			b.WriteString(strings.Join(old, ""))
		} else {
			if next < len(tables) {
				fmt.Fprintf(&b, "%s\n*%s*\n", tables[next], note)
			}
			next++
		}
		b.WriteString(end + "\n")
	}, func(line string) { b.WriteString(line) })
	if err == nil && next != len(tables) {
		err = fmt.Errorf("make %s printed %d tables, and the document has %d places for them", target,
			len(tables), next)
	}
	return b.String(), err
}
