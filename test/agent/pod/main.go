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
	at          places
	group       string
	only, ways  string
	turns       int
	quick, keep bool
	show        bool
}

func main() {
	runtime.LockOSThread() // the processes it starts end with this thread
	var o options
	flag.StringVar(&o.at.tracers, "tracers", "bin/tracers", "where the tracers were installed")
	flag.StringVar(&o.at.built, "built", "bin/pod", "where agent, daemon and applications were built; raw "+
		"figures are written there")
	flag.StringVar(&o.at.extension, "extension", "", "our extension of OpenTelemetry's agent for Java, a jar")
	flag.StringVar(&o.group, "group", "java", "whose cells: java, or others")
	flag.StringVar(&o.only, "only", "", "cells whose names match")
	flag.StringVar(&o.ways, "ways", "", "ways whose names match")
	flag.IntVar(&o.turns, "turns", 1, "times a cell, of which the middle one is shown")
	flag.BoolVar(&o.quick, "quick", false, "few slices, to see that it works")
	flag.BoolVar(&o.keep, "keep", false, "add to the raw figures that there are")
	flag.BoolVar(&o.show, "show", false, "measure nothing; show the raw figures that there are")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench pod:", err)
		os.Exit(1)
	}
}

func (o options) run() error {
	if o.group != "java" && o.group != "others" {
		return fmt.Errorf("read -group: there are java and others, not %q", o.group)
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
	ways, err := regexp.Compile(o.ways)
	if err != nil {
		return fmt.Errorf("read -ways: %w", err)
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if o.keep {
		how = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	to, err := os.OpenFile(raw, how, 0o644)
	if err != nil {
		return fmt.Errorf("write raw figures: %w", err)
	}
	defer to.Close()
	var failed []error
	for _, c := range o.cells() {
		if !names.MatchString(c.String()) {
			continue
		}
		c.app.ways = slices.DeleteFunc(slices.Clone(c.app.ways), func(w way) bool {
			return !ways.MatchString(w.name)
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
	begun := time.Now()
	turns, failed := take(o.at, c, lasts)
	fmt.Fprintf(os.Stderr, "%s: %.0f s\n", c, time.Since(begun).Seconds())
	for _, t := range turns {
		fmt.Fprintf(os.Stderr, "    %-40s %s\n", t.Way, t.CPU)
		if err := json.NewEncoder(to).Encode(t); err != nil {
			return errors.Join(failed, fmt.Errorf("write raw figures: %w", err))
		}
	}
	return failed
}

func readTurns(raw string) (turns []turn, err error) {
	from, err := os.Open(raw)
	if err != nil {
		return nil, fmt.Errorf("read raw figures: %w", err)
	}
	defer from.Close()
	for lines := json.NewDecoder(from); ; {
		var t turn
		switch err := lines.Decode(&t); {
		case errors.Is(err, io.EOF):
			return turns, nil
		case err != nil:
			return nil, fmt.Errorf("read raw figures: %w", err)
		}
		turns = append(turns, t)
	}
}
