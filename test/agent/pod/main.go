package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"
)

// options are the command-line options.
type options struct {
	at             places
	group          string
	only, variants string
	turns          int
	quick, keep    bool
	show           bool
}

func main() {
	runtime.LockOSThread() // the processes it starts end with this thread
	var o options
	flag.StringVar(&o.at.tracers, "tracers", "bin/tracers", "directory of the installed tracers")
	flag.StringVar(&o.at.built, "built", "bin/pod", "directory of the built agent, daemon and applications, "+
		"and of the raw results")
	flag.StringVar(&o.at.extension, "extension", "", "jar of this project's extension for the OpenTelemetry Java agent")
	flag.StringVar(&o.group, "group", "java", "group of cells: java or others")
	flag.StringVar(&o.only, "only", "", "regular expression of the cells to run")
	flag.StringVar(&o.variants, "ways", "", "regular expression of the variants to run")
	flag.IntVar(&o.turns, "turns", 1, "runs per cell; the median is shown")
	flag.BoolVar(&o.quick, "quick", false, "run few slices, as a smoke test")
	flag.BoolVar(&o.keep, "keep", false, "append to the raw results")
	flag.BoolVar(&o.show, "show", false, "show the existing raw results without measuring")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench pod:", err)
		os.Exit(1)
	}
}

func (o options) run() error {
	if o.group != "java" && o.group != "others" {
		return fmt.Errorf("read -group: invalid group %q; use java or others", o.group)
	}
	raw := filepath.Join(o.at.built, o.group+".jsonl")
	var failed error
	if !o.show {
		failed = o.measure(raw)
	}
	turns, err := readTurns(raw)
	if err != nil {
		return errors.Join(failed, err)
	}
	write(os.Stdout, o.cells(), turns)
	return failed
}

// measure runs cell by cell and writes each result immediately, so that an interrupted run keeps its
// results.
func (o options) measure(raw string) error {
	names, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	variants, err := regexp.Compile(o.variants)
	if err != nil {
		return fmt.Errorf("read -ways: %w", err)
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if o.keep {
		how = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	to, err := os.OpenFile(raw, how, 0o644)
	if err != nil {
		return fmt.Errorf("write raw results: %w", err)
	}
	defer to.Close()
	var failed []error
	for _, c := range o.cells() {
		if !names.MatchString(c.String()) {
			continue
		}
		c.app.variants = slices.DeleteFunc(slices.Clone(c.app.variants), func(w variant) bool {
			return !variants.MatchString(w.name)
		})
		for range o.turns {
			failed = append(failed, o.take(to, c))
		}
	}
	return errors.Join(failed...)
}

// cells returns the cells of the chosen group.
func (o options) cells() (of []cell) {
	for _, c := range cells() {
		if c.isJava() == (o.group == "java") {
			of = append(of, c)
		}
	}
	return of
}

// take runs one cell.
func (o options) take(to io.Writer, c cell) error {
	lasts := schedule{
		warm: 45 * time.Second, interval: 10 * time.Second, slice: 750 * time.Millisecond,
		settle: 20 * time.Second, rounds: 12,
	}
	if o.quick {
		lasts = schedule{warm: 3 * time.Second, interval: 2 * time.Second, slice: time.Second, rounds: 3}
	}
	started := time.Now()
	turns, failed := take(o.at, c, lasts)
	fmt.Fprintf(os.Stderr, "%s: %.0f s\n", c, time.Since(started).Seconds())
	for _, t := range turns {
		fmt.Fprintf(os.Stderr, "    %-40s %s\n", t.Way, t.CPU)
		if err := json.NewEncoder(to).Encode(t); err != nil {
			return errors.Join(failed, fmt.Errorf("write raw results: %w", err))
		}
	}
	return failed
}

func readTurns(raw string) (turns []turn, err error) {
	from, err := os.Open(raw)
	if err != nil {
		return nil, fmt.Errorf("read raw results: %w", err)
	}
	defer from.Close()
	for lines := json.NewDecoder(from); ; {
		var t turn
		switch err := lines.Decode(&t); {
		case errors.Is(err, io.EOF):
			return turns, nil
		case err != nil:
			return nil, fmt.Errorf("read raw results: %w", err)
		}
		turns = append(turns, t)
	}
}
