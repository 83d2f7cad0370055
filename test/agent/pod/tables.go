package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// table is a figure of all turns, with a row per cell and a column per variant.
type table struct {
	title string
	show  func(turn) string // empty if not applicable
}

var tables = []table{
	{"CPU µs a request: all (application + daemon + agent)", func(t turn) string { return t.CPU.String() }},
	{"peak memory MiB: all (application + daemon + agent)", func(t turn) string { return t.Peak.String() }},
	{"p99 ms, and what was answered a second where it is less than was due", latency},
	{"Java's pauses for collections in its slices: number, ms in all", func(t turn) string {
		if t.Pauses == 0 {
			return ""
		}
		return fmt.Sprintf("%d, %.0f", t.Pauses, t.PauseMs)
	}},
	{"requests that the statistics have under their own name, and under a mask; spans that they have " +
		"lost", named},
}

// String returns the sum and its parts.
func (p parts) String() string {
	switch {
	case p.Agent == 0:
		return fmt.Sprintf("%.0f", p.App)
	case p.Daemon == 0:
		return fmt.Sprintf("%.0f (%.0f + 0 + %.0f)", p.sum(), p.App, p.Agent)
	}
	return fmt.Sprintf("%.0f (%.0f + %.0f + %.0f)", p.sum(), p.App, p.Daemon, p.Agent)
}

func latency(t turn) string {
	value := fmt.Sprintf("%.1f", t.P99)
	if t.Served < 0.95*float64(t.Rate) {
		value += fmt.Sprintf(", %.0f/s of %d", t.Served, t.Rate)
	}
	if t.Failed > 0 {
		value += fmt.Sprintf(", %d failed", t.Failed)
	}
	return value
}

func named(t turn) string {
	if t.Traces == 0 {
		return ""
	}
	value := share(t.Counted.Named, t.Interval)
	if t.Counted.Masked > 0 {
		value += ", masked " + share(t.Counted.Masked, t.Interval)
	}
	if lost := t.Spans - t.Counted.Hits; lost > 0 {
		value += ", lost " + share(lost, t.Spans)
	}
	return value
}

func share(part, of int) string { return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(of)) }

// write writes the non-empty tables of cells with the same variants. Of several turns it uses the one with
// the median total processor time.
func write(to io.Writer, of []cell, turns []turn) {
	all := of[0].app.variants
	for _, table := range tables {
		rows, figures := table.rows(of, turns)
		if figures == 0 {
			continue
		}
		fmt.Fprintf(to, "| %s |%s\n|%s\n", table.title, heading(all), strings.Repeat(" --- |", len(all)+1))
		fmt.Fprintf(to, "%s\n", rows)
	}
}

func heading(variants []variant) (all string) {
	for _, w := range variants {
		all += " " + w.name + " |"
	}
	return all
}

func (t table) rows(of []cell, turns []turn) (rows string, figures int) {
	for _, c := range of {
		row, in := "| "+c.String()+" |", 0
		for _, w := range c.app.variants {
			value := ""
			if turn, is := middle(turns, c.String(), w.name); is {
				value = t.show(turn)
			}
			if value != "" {
				in++
			}
			row += " " + value + " |"
		}
		if in > 0 {
			rows, figures = rows+row+"\n", figures+in
		}
	}
	return rows, figures
}

func middle(turns []turn, cell, variant string) (t turn, is bool) {
	var of []turn
	for _, t := range turns {
		if t.Cell == cell && t.Way == variant {
			of = append(of, t)
		}
	}
	if len(of) == 0 {
		return t, false
	}
	slices.SortFunc(of, func(a, b turn) int { return int(a.CPU.sum() - b.CPU.sum()) })
	return of[len(of)/2], true
}
