package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const chart = "../../deploy/helm/spanstatsd"

// TestTable_MatchesSchema: the README is up to date with the schema. If this fails, run
// `make chart-readme`.
func TestTable_MatchesSchema(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := renew(chart, readme)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readme, want) {
		t.Error("the README's table is not that of values.schema.json: make chart-readme")
	}
}

// TestValues_AreDescribed: the error names a value without a description.
func TestValues_AreDescribed(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"values.yaml":        "a: 1\nb:\n  c: [x]\n",
		"values.schema.json": `{"properties": {"a": {"description": "one"}, "b": {"properties": {"c": {}}}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := renew(dir, []byte(begin+end)); err == nil ||
		!strings.Contains(err.Error(), "b.c has no description") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "values.schema.json"),
		[]byte(`{"properties": {"a": {"description": "one"}, "b": {"properties": {"c": {"description": "of b"}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := renew(dir, []byte("before\n"+begin+"old\n"+end+"after\n"))
	want := "before\n" + begin + "| value | default | meaning |\n| --- | --- | --- |\n" +
		"| `a` | `1` | one |\n| `b.c` | `[\"x\"]` | of b |\n" + end + "after\n"
	if err != nil || string(got) != want {
		t.Errorf("made %s, %v", got, err)
	}
}
