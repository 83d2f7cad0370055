package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestSBOM_MatchesDaemon builds the daemon and compares its bill of materials with the modules
// that the go command finds in it. They must be the same, and each one except the standard
// library must be required by another.
func TestSBOM_MatchesDaemon(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "spanstatsd")
	command := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = "../.."
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	command("build", "-buildvcs=false", "-o", binary, "./cmd/spanstatsd")
	graph := command("mod", "graph")
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run([]string{"1.2.3", binary}, bytes.NewReader(graph), out); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("two bills of one binary differ")
	}
	var b cdx.BOM
	if err := json.Unmarshal(first.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	uuid := regexp.MustCompile(
		`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !uuid.MatchString(b.SerialNumber) {
		t.Errorf("serial number %s", b.SerialNumber)
	}
	want := map[string]bool{"stdlib": true}
	for _, line := range strings.Fields(string(command("list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}", "./cmd/spanstatsd"))) {
		want[line] = true
	}
	required := map[string]bool{}
	for _, d := range *b.Dependencies {
		if d.Dependencies == nil {
			continue
		}
		for _, r := range *d.Dependencies {
			required[r] = true
		}
	}
	for _, c := range *b.Components {
		name := c.Name + "@" + c.Version
		if c.Name == "stdlib" {
			name = "stdlib"
		} else if !required[c.BOMRef] {
			t.Errorf("no module requires %s", c.BOMRef)
		}
		if !want[name] {
			t.Errorf("%s is in the bill and not in the binary, or twice", name)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not in the bill: %v", want)
	}
}
