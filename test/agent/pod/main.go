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
	"time"
)

func main() {
	at := places{}
	flag.StringVar(&at.tracers, "tracers", "bin/tracers", "where the tracers were installed")
	flag.StringVar(&at.built, "built", "bin/pod", "where agent, daemon and applications were built; raw figures are written there")
	only := flag.String("only", "", "cells whose names match")
	quick := flag.Bool("quick", false, "short windows, to see that it works")
	each := flag.Int("turns", 1, "turns a way, of which the middle one is shown")
	shown := flag.Bool("show", false, "measure nothing; show the raw figures that there are")
	flag.Parse()
	if err := run(at, *only, *quick, *each, *shown); err != nil {
		fmt.Fprintln(os.Stderr, "bench pod:", err)
		os.Exit(1)
	}
}

func run(at places, only string, quick bool, each int, shown bool) error {
	raw := filepath.Join(at.built, "figures.jsonl")
	var failed error
	if !shown {
		lasts := windows{time.Minute, 10 * time.Second}
		if quick {
			lasts = windows{3 * time.Second, 3 * time.Second}
		}
		failed = measure(at, raw, only, lasts, each)
	}
	turns, err := readTurns(raw)
	if err != nil {
		return errors.Join(failed, err)
	}
	write(os.Stdout, turns)
	return failed
}

// measure takes every turn, cell by cell, and writes what it showed at once, so that whoever
// stops halfway has what was measured.
func measure(at places, raw, only string, lasts windows, each int) error {
	names, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	to, err := os.Create(raw)
	if err != nil {
		return fmt.Errorf("write raw figures: %w", err)
	}
	defer to.Close()
	var failed []error
	for _, c := range cells() {
		if !names.MatchString(c.String()) {
			continue
		}
		for range each {
			for _, w := range ways {
				begun := time.Now()
				t, err := take(at, c, w, lasts)
				fmt.Fprintf(os.Stderr, "%-30s %-20s %4.0f s  %s %v\n", c, w.name, time.Since(begun).Seconds(), t.CPU, err)
				if err != nil {
					failed = append(failed, err)
					continue
				}
				if err := json.NewEncoder(to).Encode(t); err != nil {
					return fmt.Errorf("write raw figures: %w", err)
				}
			}
		}
	}
	return errors.Join(failed...)
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
