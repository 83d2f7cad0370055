package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// readGraph reads the output of `go mod graph` and returns the dependencies among the modules
// of the binary. Required versions are ignored: the selected version is recorded in the binary.
func readGraph(graph io.Reader, references map[string]string) (map[string]map[string]bool, error) {
	edges := map[string]map[string]bool{}
	lines := bufio.NewScanner(graph)
	for lines.Scan() {
		module, dependency, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			return nil, fmt.Errorf("read module graph: %q is not two modules", lines.Text())
		}
		from, to := references[path(module)], references[path(dependency)]
		if from == "" || to == "" {
			continue
		}
		if edges[from] == nil {
			edges[from] = map[string]bool{}
		}
		edges[from][to] = true
	}
	return edges, lines.Err()
}

func path(module string) string {
	name, _, _ := strings.Cut(module, "@")
	return name
}
