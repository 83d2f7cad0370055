// Command benchdocs repeats the measurements of a document, and replaces its tables:
//
//	make bench-docs                        # everything, in the order of the document
//	make bench-docs ONLY=bench,bench-peers # some targets
//	make bench-docs FILE=docs/pod.md       # another document
//	benchdocs -charts                      # draws the charts again, measures nothing
//	benchdocs -stale                       # lists tables of outdated code and old peers, measures nothing
//
// The document marks its tables. The lines
//
//	<!-- make bench-peers -->
//	<!-- end -->
//
// enclose a table that `make bench-peers` prints. If a target prints several tables, they fill
// its places in their order. A table consists of lines that begin with "|", or of Go benchmark
// lines, which are converted to a table. The document is written after each target, so that an
// interrupted run keeps finished measurements. A target that fails leaves its tables unchanged.
// Charts of the tables are drawn again at the end. The text around the tables has to be updated by hand.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// comparison is the document whose tables compare with complete programs of peers.
const comparison = "docs/comparison.md"

func main() {
	file := flag.String("file", "docs/benchmarks.md", "the document")
	only := flag.String("only", "", "targets, separated by commas (default: all that the document names)")
	stale := flag.Bool("stale", false, "measure nothing, and name the tables whose packages have changed since, "+
		"and peers of old versions")
	draw := flag.Bool("charts", false, "measure nothing, and draw the charts of docs/benchmarks.md")
	flag.Parse()
	if *stale {
		if err := errors.Join(tellOldPeers(*file, time.Now()), tellOldPeers(comparison, time.Now()), tellStale(*file)); err != nil {
			fmt.Fprintln(os.Stderr, "bench docs:", err)
			os.Exit(1)
		}
		return
	}
	if *draw {
		if err := writeCharts(*file); err != nil {
			fmt.Fprintln(os.Stderr, "bench docs:", err)
			os.Exit(1)
		}
		return
	}
	if err := renew(*file, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench docs:", err)
		os.Exit(1)
	}
}

// renew measures every target, and returns an error that names those that failed.
func renew(file, only string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	targets, err := targetsOf(string(text))
	if err != nil {
		return err
	}
	if only != "" {
		wanted := strings.Split(only, ",")
		for _, name := range wanted {
			if !slices.Contains(targets, name) {
				return fmt.Errorf("read -only: the document has no place for %s, only for %s", name,
					strings.Join(targets, ", "))
			}
		}
		targets = wanted
	}
	var failed []error
	for _, target := range targets {
		start := time.Now()
		err := measure(file, target)
		fmt.Printf("%-18s %s", target, time.Since(start).Round(time.Second))
		if err != nil {
			failed = append(failed, err)
			fmt.Print(", failed")
		}
		fmt.Println()
	}
	if filepath.Base(file) == "benchmarks.md" {
		failed = append(failed, writeCharts(file))
	}
	return errors.Join(failed...)
}

// measure runs one target and writes its tables.
func measure(file, target string) error {
	note := circumstances()
	var printed bytes.Buffer
	command := exec.Command("make", "--no-print-directory", "--silent", target)
	command.Stdout, command.Stderr = &printed, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("make %s: %w: %s", target, err, printed.Bytes())
	}
	text, err := os.ReadFile(file) // read again, because the file can have been edited during the measurement
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	renewed, err := replace(string(text), target, tablesOf(printed.String()), note)
	if err != nil {
		return fmt.Errorf("%w; make %s has printed:\n%s", err, target, printed.Bytes())
	}
	if err := os.WriteFile(file, []byte(renewed), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}
