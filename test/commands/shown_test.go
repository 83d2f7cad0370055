package commands

import (
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v2"
)

// compile compiles a page's Go code as a program of the repository's module and runs it with the page's
// daemon, which must receive its span.
func (r *reader) compile(b *block) {
	r.t.Helper()
	const program = "internal/snippet"
	dir := filepath.Join(clone, program)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	source := strings.Replace(`package main

import (
	"context"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

func main() {
	took := time.Millisecond
	SHOWN
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Close(ctx); err != nil || c.Stats().Sent == 0 {
		panic("no span was sent")
	}
}
`, "SHOWN", b.text(), 1)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.run("go build -o bin/shown ./" + program)
	r.run("bin/shown")
	r.expected++
}

// load checks YAML with its consumer: Prometheus for scrape configurations, and test/deploy for
// Kubernetes.
func (r *reader) load(b *block) {
	r.t.Helper()
	var shown map[string]any
	if err := yaml.UnmarshalStrict([]byte(b.text()), &shown); err != nil {
		r.t.Fatalf("%s: %v", b, err)
	}
	if shown["scrape_configs"] != nil {
		r.scrape(b)
	}
}
