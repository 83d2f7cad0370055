package otel

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestGo runs in the regular tests, since the Go SDK is an ordinary module.
func TestGo(t *testing.T) {
	shop := filepath.Join(t.TempDir(), "goshop")
	if out, err := exec.Command("go", "build", "-o", shop, "./apps/goshop").CombinedOutput(); err != nil {
		t.Fatalf("build the application: %v: %s", err, out)
	}
	language{
		command: []string{shop}, protocols: []string{"http/protobuf", "grpc"},
		made:  regexp.MustCompile(`(?m)^span of ([0-9a-f]{32})$`),
		order: "/orders/{number}", stock: "/stock/{number}",
	}.test(t)
}
