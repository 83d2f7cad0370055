package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestGo_DocumentedSetUp compiles the set-up in docs/go-opentelemetry.md and runs it: each of its spans is counted.
func TestGo_DocumentedSetUp(t *testing.T) {
	page, err := os.ReadFile("../../docs/go-opentelemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```go\n")
	shown, _, _ := strings.Cut(after, "```")
	const end = "// before the process ends:\n"
	if !strings.Contains(shown, end) {
		t.Fatalf("the set-up has no end: %s", shown)
	}
	source := strings.NewReplacer("SHOWN", strings.Replace(shown, end, `
	for range 100 {
		_, span := provider.Tracer("shop").Start(ctx, "GET /carts/{id}")
		span.End()
	}
	`, 1)).Replace(`package main

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	spanstatsd "github.com/spanstatsd/spanstatsd/clients/otel-go"
)

func main() {
	ctx := context.Background()
	res := resource.NewSchemaless(attribute.String("service.name", "shop"))
	SHOWN
	if err != nil {
		panic(err)
	}
}
`)
	dir, err := os.MkdirTemp(".", "snippet") // within this module, for its dependencies
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPod(t)
	run := exec.Command("go", "run", "./"+filepath.Base(dir))
	run.Env = append(os.Environ(), "SPANSTATSD_SOCKET="+p.socket, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+p.otlp,
		"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.end(syscall.SIGTERM)
	counted := int64(0)
	for _, calls := range p.series() {
		counted += calls
	}
	if counted != 100 {
		t.Errorf("%d of 100 spans are counted", counted)
	}
}
