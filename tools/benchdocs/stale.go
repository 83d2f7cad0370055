package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// measured is the code that a target measures: packages of the daemon's module, including the
// packages of ours that they import, and folders, including subfolders.
type measured struct{ packages, folders []string }

var (
	socketWay = measured{packages: []string{"./client", "./internal/ingest", "./internal/export/agent"}}
	tracesWay = measured{packages: []string{"./internal/ingest/datadog", "./internal/export/agent"}}
	otlpWay   = measured{packages: []string{"./internal/ingest/otlp", "./internal/export/agent"}}

	measures = map[string]measured{
		"bench":        socketWay,
		"bench-peers":  socketWay,
		"bench-floods": socketWay,
		"bench-rates":  socketWay,
		"bench-ingest": {packages: []string{"./client", "./internal/ingest"}},
		"bench-traces": tracesWay,
		"bench-apm":    tracesWay,
		"bench-otlp":   otlpWay,
		"bench-flush": {packages: []string{
			"./internal/export/agent", "./internal/export/otlp", "./internal/export/points",
		}},
		"bench-scrape":        {packages: []string{"./internal/export/prometheus"}},
		"bench-clients":       {packages: []string{"./client"}, folders: []string{"clients/otel-go"}},
		"bench-python-client": {folders: []string{"clients/python/src"}},
		"bench-node-client":   {folders: []string{"clients/node/src"}},
		"bench-java": {folders: []string{
			"clients/java/client/src/main",
			"clients/java/opentelemetry/src/main",
		}},
	}
)

var errStale = errors.New("tables are of other code than this")

// tellStale prints the tables of a document that were measured with other code than the current
// one, and fails if there are any. It does nothing outside a Git repository.
func tellStale(file string) error {
	if err := exec.Command("git", "rev-parse", "--git-dir").Run(); err != nil {
		fmt.Println("No repository is here, so it is not known which tables are of this code.")
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	tables, err := commitsOf(string(text))
	if err != nil {
		return err
	}
	var stale []string
	for _, t := range tables {
		why, err := t.changes()
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		fmt.Printf("%s: make %s was measured at %s; since then: %s\n", file, t.target, t.commit, why)
		if !slices.Contains(stale, t.target) {
			stale = append(stale, t.target)
		}
	}
	if stale == nil {
		return nil
	}
	return fmt.Errorf("%w: %s; measure again with make bench-docs ONLY=%s", errStale, file,
		strings.Join(stale, ","))
}

// table identifies a table by the target that printed it and by the measured commit.
type table struct{ target, commit string }

var ofCommit = regexp.MustCompile(`^\*Measured .*, commit ([0-9a-f]+),`)

// commitsOf returns the distinct tables of a document. The commit of a table without a note is
// empty.
func commitsOf(text string) (tables []table, err error) {
	err = places(text, func(target string, lines []string) {
		t := table{target: target}
		for _, line := range lines {
			if found := ofCommit.FindStringSubmatch(line); found != nil {
				t.commit = found[1]
			}
		}
		if !slices.Contains(tables, t) {
			tables = append(tables, t)
		}
	}, func(string) {})
	return tables, err
}

// changes describes the changes of the measured code since the table's commit. It is empty if
// there are none.
func (t table) changes() (string, error) {
	of, known := measures[t.target]
	if !known {
		return "", fmt.Errorf("look at make %s: its packages are unknown; list them in "+
			"tools/benchdocs/stale.go", t.target)
	}
	if t.commit == "" || exec.Command("git", "cat-file", "-e", t.commit+"^{commit}").Run() != nil {
		return "that commit is not in this repository", nil
	}
	output, err := exec.Command("git", "diff", "--name-only", t.commit).Output()
	if err != nil {
		return "", fmt.Errorf("compare with %s: %w", t.commit, err)
	}
	isOf, err := of.rooms()
	if err != nil {
		return "", err
	}
	var rooms []string
	for file := range strings.Lines(string(output)) {
		room := path.Dir(strings.TrimSpace(file))
		if isCode(strings.TrimSpace(file)) && isOf(room) && !slices.Contains(rooms, room) {
			rooms = append(rooms, room)
		}
	}
	return strings.Join(rooms, ", "), nil
}

// rooms returns a function that reports whether a folder contains measured code.
func (m measured) rooms() (isOf func(folder string) bool, err error) {
	var needed []string
	if len(m.packages) > 0 {
		output, err := exec.Command("go", append([]string{
			"list", "-deps", "-f",
			"{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}",
		}, m.packages...)...).Output()
		if err != nil {
			return nil, fmt.Errorf("list what %s need: %w", strings.Join(m.packages, " "), err)
		}
		for line := range strings.Lines(string(output)) {
			needed = append(needed, strings.TrimPrefix(strings.TrimSpace(line),
				"github.com/spanstatsd/spanstatsd/"))
		}
	}
	return func(folder string) bool {
		return slices.Contains(needed, folder) || slices.ContainsFunc(m.folders, func(of string) bool {
			return folder == of || strings.HasPrefix(folder, of+"/")
		})
	}, nil
}

// isCode reports whether a file is compiled into the measured programs.
func isCode(file string) bool {
	return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") ||
		strings.HasSuffix(file, ".java")
}
