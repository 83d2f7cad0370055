package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// chart is a bar chart of a table in docs/benchmarks.md. It has a group of bars for each input, such as a recorded
// request, and in each group a bar for each of the compared programs.
type chart struct {
	file, title string
	firstColumn string                 // the heading of the table's first column, which identifies the table
	bars        func([][]string) []bar // converts the rows of the table
}

type bar struct {
	input, program string
	nanoseconds    float64
}

// charts are written next to the document, and docs/performance.md shows them.
var charts = []chart{
	{
		file: "images/cost-otlp.svg", title: "OTLP requests of SDKs: CPU ns per span", firstColumn: "request",
		bars: barsOfRequests,
	},
	{
		file: "images/cost-spans.svg", title: "Decoded spans: CPU ns per span", firstColumn: "CPU ns a span, allocations, times ours",
		bars: barsOfWorkloads,
	},
}

// barsOfRequests converts a table with a row for each request and program.
func barsOfRequests(rows [][]string) (bars []bar) {
	names := map[string]string{
		"spanstatsd, `otel`":                 "spanstatsd",
		"spanmetrics connector, as it comes": "Collector, span_metrics",
		"spanmetrics connector, our labels":  "the same, spanstatsd's labels",
	}
	for _, row := range rows {
		if name := names[row[3]]; name != "" {
			bars = append(bars, bar{strings.Trim(row[0], "`"), name, number(row[4])})
		}
	}
	return bars
}

// barsOfWorkloads converts a table with a row for each program and a column for each workload.
func barsOfWorkloads(rows [][]string) (bars []bar) {
	programs := []struct{ row, name string }{
		{"spanstatsd, whole daemon", "spanstatsd"},
		{"spanmetrics connector, our labels", "Collector, span_metrics"},
		{"agent, Concentrator.Add, 44 peer tags", "Datadog agent"},
	}
	for column, workload := range []string{"stable", "pool", "skewed"} {
		for _, program := range programs {
			for _, row := range rows {
				if row[0] == program.row {
					nanoseconds, _, _ := strings.Cut(row[column+1], ",")
					bars = append(bars, bar{workload, program.name, number(nanoseconds)})
				}
			}
		}
	}
	return bars
}

// number returns the value of a table cell, or 0 if it is not a number. Tests compare the charts with the tables.
func number(cell string) float64 {
	value, _ := strconv.ParseFloat(cell, 64)
	return value
}

// writeCharts draws the charts of a document whose tables have been renewed.
func writeCharts(document string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	for _, c := range charts {
		drawn, err := c.draw(string(text))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(document), c.file), drawn, 0o644); err != nil {
			return fmt.Errorf("write chart: %w", err)
		}
	}
	return nil
}

// draw returns a chart of the first table in a document that has the heading of the chart.
func (c chart) draw(document string) ([]byte, error) {
	_, table, found := strings.Cut(document, "\n| "+c.firstColumn+" |")
	if !found {
		return nil, fmt.Errorf("draw %s: no table of the document begins with the column %q", c.file, c.firstColumn)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows [][]string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, cells(strings.TrimSpace(line)))
		}
	}
	bars := c.bars(rows)
	if len(bars) == 0 {
		return nil, fmt.Errorf("draw %s: no row of the table has a compared program", c.file)
	}
	return c.svg(bars), nil
}

// Sizes are in pixels. The left margin holds the inputs and programs.
const (
	chartWidth, leftMargin, rightMargin = 720, 290, 60
	titleHeight, barHeight, groupGap    = 34, 16, 8
)

// style works on light and on dark pages.
const style = `<style>
text { font: 12px sans-serif; fill: #333 } .title { font-weight: bold; font-size: 14px }
.background { fill: #fff } .ours { fill: #1a7f6b } .other { fill: #9aa7b0 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .background { fill: #16191c } .other { fill: #5f6b74 } }
</style>
`

func (c chart) svg(bars []bar) []byte {
	longest, groups := 0.0, 0
	for i, b := range bars {
		longest = max(longest, b.nanoseconds)
		if i == 0 || b.input != bars[i-1].input {
			groups++
		}
	}
	height := titleHeight + len(bars)*barHeight + groups*groupGap
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		chartWidth, height, chartWidth, height, html.EscapeString(c.title))
	s.WriteString(style)
	fmt.Fprintf(&s, `<rect class="background" width="%d" height="%d"/>`+"\n", chartWidth, height)
	fmt.Fprintf(&s, `<text class="title" x="8" y="20">%s</text>`+"\n", html.EscapeString(c.title))
	y := titleHeight
	for i, b := range bars {
		if i > 0 && b.input != bars[i-1].input {
			y += groupGap
		}
		baseline := y + barHeight - 4
		if i == 0 || b.input != bars[i-1].input {
			fmt.Fprintf(&s, `<text x="8" y="%d">%s</text>`+"\n", baseline, html.EscapeString(b.input))
		}
		class := "other"
		if b.program == "spanstatsd" {
			class = "ours"
		}
		width := b.nanoseconds / longest * (chartWidth - leftMargin - rightMargin)
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`, leftMargin-6, baseline, html.EscapeString(b.program))
		fmt.Fprintf(&s, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`, class, leftMargin, y+1, width, barHeight-2)
		fmt.Fprintf(&s, `<text x="%.1f" y="%d">%.0f</text>`+"\n", leftMargin+width+5, baseline, b.nanoseconds)
		y += barHeight
	}
	s.WriteString("</svg>\n")
	return []byte(s.String())
}
