package main

import (
	"regexp"
	"slices"
	"strings"
)

// tablesOf returns the tables in a command's output, without the spaces that align their
// columns.
func tablesOf(printed string) (tables []string) {
	var rows []string
	finish := func() {
		if len(rows) > 0 {
			tables = append(tables, strings.Join(rows, ""))
		}
		rows = nil
	}
	var of benchmark
	for line := range strings.Lines(printed) {
		line = strings.TrimSpace(line)
		switch b, is := readBenchmark(line); {
		case is:
			if !b.isLike(of) {
				finish()
				rows = append(rows, b.heading()...)
			}
			of, rows = b, append(rows, row(append(b.names, b.values...)))
		case strings.HasPrefix(line, "|"):
			if of.names != nil {
				finish()
				of = benchmark{}
			}
			rows = append(rows, row(cells(line)))
		default:
			finish()
			of = benchmark{}
		}
	}
	finish()
	return tables
}

// cells returns the cells of a table row.
func cells(line string) []string {
	found := strings.Split(strings.Trim(line, "|"), "|")
	for i := range found {
		found[i] = strings.TrimSpace(found[i])
	}
	return found
}

func row(cells []string) string {
	line := "|"
	for _, cell := range cells {
		if cell != "" {
			line += " " + cell
		}
		line += " |"
	}
	return line + "\n"
}

// benchmark is a line of a Go benchmark: the parts of its name, and its figures.
type benchmark struct {
	root          string
	names         []string
	units, values []string
}

var (
	benchmarkLine = regexp.MustCompile(`^(Benchmark\w*)(\S*?)(?:-\d+)?\s+\d+\s+(\S.*)$`)
	figure        = regexp.MustCompile(`(\S+) (\S+)`)
)

func readBenchmark(line string) (b benchmark, ok bool) {
	found := benchmarkLine.FindStringSubmatch(line)
	if found == nil {
		return b, false
	}
	b.root = found[1]
	b.names = strings.Split(strings.TrimPrefix(found[2], "/"), "/")
	if found[2] == "" {
		b.names = []string{strings.TrimPrefix(b.root, "Benchmark")}
	}
	for _, f := range figure.FindAllStringSubmatch(found[3], -1) {
		b.values, b.units = append(b.values, f[1]), append(b.units, f[2])
	}
	return b, true
}

// isLike reports whether two lines belong to the same table.
func (b benchmark) isLike(other benchmark) bool {
	return len(b.names) == len(other.names) && slices.Equal(b.units, other.units)
}

func (b benchmark) heading() []string {
	head, line := make([]string, len(b.names)), []string(nil)
	head = append(head, b.units...)
	for range head {
		line = append(line, "---")
	}
	return []string{row(head), row(line)}
}
