package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const benchmarks = "../../docs/benchmarks.md"

func TestCharts_ShowTheTables(t *testing.T) {
	text, err := os.ReadFile(benchmarks)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		want, err := c.draw(string(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(filepath.Dir(benchmarks), c.file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s does not show the table of docs/benchmarks.md (%v): run `make charts`", c.file, err)
		}
		if !strings.Contains(string(page), "("+c.file+")") {
			t.Errorf("docs/performance.md does not show %s", c.file)
		}
	}
}

func TestChart_DrawsLongestBarInFull(t *testing.T) {
	const text = "\n| request | spans | bytes a span | counted by | CPU ns a span |\n| --- | --- | --- | --- | --- |\n" +
		"| `go` | 512 | 383 | spanstatsd, `otel` | 100 |\n" +
		"| `go` | 512 | 383 | spanmetrics connector, as it comes | 400 |\n\n"
	drawn, err := charts[0].draw(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`class="other" x="290" y="51" width="370.0"`, `class="ours" x="290" y="35" width="92.5"`} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("the chart has no bar %q:\n%s", want, drawn)
		}
	}
	if _, err := charts[0].draw("\n| other |\n"); err == nil {
		t.Error("a document without the table has a chart")
	}
}
