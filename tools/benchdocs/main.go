// Command benchdocs measures again what a document shows, and writes the new tables
// where the old ones stand:
//
//	make bench-docs                        # everything, in the order of the document
//	make bench-docs ONLY=bench,bench-peers # some of it
//	make bench-docs FILE=docs/pod.md       # another document
//	benchdocs -stale                       # measures nothing: which tables are of other code?
//
// The document itself says what it wants. Between the lines
//
//	<!-- make bench-peers -->
//	<!-- end -->
//
// stands a table that `make bench-peers` prints; where a target prints several, its
// places take them in their order. A table is lines that begin with a bar, or those
// of a Go benchmark, which become one. The document is written after each target, so
// that whoever stops halfway keeps what was measured, and a target that fails leaves
// its tables as they were. What the text around them says is for a person to renew.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	file := flag.String("file", "docs/benchmarks.md", "the document")
	only := flag.String("only", "", "targets, separated by commas (default: all that the document names)")
	stale := flag.Bool("stale", false, "measure nothing, and name the tables whose rooms have changed since")
	flag.Parse()
	if *stale {
		if err := tellStale(*file); err != nil {
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

// renew measures every target, and says at the end which failed.
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
		begun := time.Now()
		err := measure(file, target)
		fmt.Printf("%-18s %s", target, time.Since(begun).Round(time.Second))
		if err != nil {
			failed = append(failed, err)
			fmt.Print(", failed")
		}
		fmt.Println()
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
	text, err := os.ReadFile(file) // again: a person may have written meanwhile
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	renewed, err := replace(string(text), target, tablesOf(printed.String()), note)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(renewed), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}
