package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// result is the result of a trial.
type result struct {
	Tool, Scenario string
	score
	Reported  losses
	Told      float64 // spans of which the sender knows that they are lost
	CPUMicros float64 // per received span
	PeakMiB   float64
	Gap       time.Duration
	Crashes   int
}

// printScenario prints the results of a scenario as a table.
func printScenario(out io.Writer, s scenario, results []result) {
	fmt.Fprintf(out, "| %s: %s | sent | lost | doubled | misnamed | unaccounted | reported as lost | CPU µs a span | peak MiB | longest gap, s |\n",
		s.name, s.about)
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range results {
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s | %.2g | %.0f | %.0f |\n", r.Tool, spans(r.Sent), spans(r.Lost),
			spans(r.Doubled), spans(r.Misnamed), spans(r.Unaccounted), r.reasons(), r.CPUMicros, r.PeakMiB, r.Gap.Seconds())
	}
	fmt.Fprintln(out)
}

// reasons lists the reported losses, largest first.
func (r result) reasons() string {
	var list []string
	if r.Told > 0 {
		list = append(list, "known to the sender "+spans(r.Told))
	}
	for reason, n := range r.Reported {
		list = append(list, reason+" "+spans(n))
	}
	slices.Sort(list)
	if r.Crashes > 0 {
		list = append(list, fmt.Sprintf("%d crashes", r.Crashes))
	}
	return strings.Join(list, ", ")
}

// spans formats a number of spans.
func spans(n float64) string {
	if math.IsInf(n, 1) {
		return "in another unit"
	}
	return fmt.Sprintf("%.0f", n)
}

// printTools prints the versions of the tools.
func printTools(out io.Writer, programs string, tools []tool) error {
	fmt.Fprintln(out, "| tool | version | spans |\n| --- | --- | --- |")
	for _, t := range tools {
		version := "this repository"
		if program, module := t.build(); module != "" {
			var err error
			if version, err = moduleVersion(filepath.Join(programs, program), module); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", t.name(), version, t.path())
	}
	fmt.Fprintln(out)
	return nil
}

// moduleVersion returns the version of a module that a program is built with.
func moduleVersion(program, module string) (string, error) {
	build, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", fmt.Errorf("find version of %s: %w", module, err)
	}
	for _, m := range build.Deps {
		if m.Path == module {
			return path.Base(module) + " " + m.Version, nil
		}
	}
	return "", fmt.Errorf("find version of %s: %s is not built with it", module, program)
}

// sums returns the sums of a tool's scores.
func sums(t tool, results []result) (all score) {
	for _, r := range results {
		if r.Tool == t.name() {
			all.Sent += r.Sent
			all.Lost += r.Lost
			all.Doubled += r.Doubled
			all.Misnamed += r.Misnamed
			all.Unaccounted += r.Unaccounted
		}
	}
	return all
}

// printSummary prints the sums over all scenarios.
func printSummary(out io.Writer, tools []tool, results []result) {
	fmt.Fprintln(out, "| tool | sent | lost | doubled | misnamed | unaccounted |\n| --- | --- | --- | --- | --- | --- |")
	for _, t := range tools {
		all := sums(t, results)
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", t.name(), spans(all.Sent), spans(all.Lost), spans(all.Doubled),
			spans(all.Misnamed), spans(all.Unaccounted))
	}
	fmt.Fprintln(out)
}

// printLine prints the last line.
func printLine(out io.Writer, tools []tool, results []result) {
	var line []string
	for _, t := range tools {
		all := sums(t, results)
		line = append(line, fmt.Sprintf("%s %s, %s, %s, %s", t.name(), spans(all.Lost), spans(all.Doubled), spans(all.Misnamed),
			spans(all.Unaccounted)))
	}
	fmt.Fprintf(out, "lost, doubled, misnamed, unaccounted: %s\n", strings.Join(line, "; "))
}
