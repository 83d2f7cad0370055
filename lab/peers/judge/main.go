// Judge sends known spans through several tools, each in a process of its own, and compares their output with the spans that were
// sent. docs/comparison.md defines the scores, and has the tables that it prints.
//
// A tool implements the interface of the same name in one file tool_*.go. A scenario is an entry of the list in scenario.go.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// options are the flags.
type options struct {
	programs        string
	isQuick         bool
	tools, scenario string
	parallel        int
}

func main() {
	var o options
	flag.StringVar(&o.programs, "programs", "../../bin/judge", "directory of the programs spanstatsd, collector and agent")
	flag.BoolVar(&o.isQuick, "quick", false, "send spans for a shorter time")
	flag.StringVar(&o.tools, "tools", "", "regular expression of the tools")
	flag.StringVar(&o.scenario, "scenarios", "", "regular expression of the scenarios")
	flag.IntVar(&o.parallel, "parallel", 3, "number of scenarios at the same time")
	flag.Parse()
	if err := o.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func (o options) run(out io.Writer) error {
	wantedTools, err := regexp.Compile(o.tools)
	if err != nil {
		return fmt.Errorf("read -tools: %w", err)
	}
	wantedScenarios, err := regexp.Compile(o.scenario)
	if err != nil {
		return fmt.Errorf("read -scenarios: %w", err)
	}
	chosen := slices.DeleteFunc(tools(), func(t tool) bool { return !wantedTools.MatchString(t.name()) })
	var all []result
	var chosenScenarios []scenario
	for _, s := range scenarios() {
		if wantedScenarios.MatchString(s.name) {
			chosenScenarios = append(chosenScenarios, s)
		}
	}
	results, failed := o.judgeAll(chosenScenarios, chosen) // other trials have results if one has failed
	var tables bytes.Buffer
	for i, s := range chosenScenarios {
		printScenario(&tables, s, results[i])
		all = append(all, results[i]...)
	}
	printSummary(out, chosen, all)
	if err := printTools(out, o.programs, chosen); err != nil {
		return err
	}
	if _, err := tables.WriteTo(out); err != nil {
		return fmt.Errorf("print tables: %w", err)
	}
	printLine(out, chosen, all)
	return failed
}

// judgeAll runs several scenarios at the same time, and then those that need the whole machine, one by one.
func (o options) judgeAll(scenarios []scenario, tools []tool) ([][]result, error) {
	results, failed := make([][]result, len(scenarios)), make([]error, len(scenarios))
	judge := func(i int) {
		s := scenarios[i]
		fmt.Fprintf(os.Stderr, "%s  %s: %s\n", time.Now().Format(time.TimeOnly), s.name, s.about)
		var err error
		if results[i], err = o.judge(s, tools); err != nil {
			failed[i] = fmt.Errorf("scenario %s: %w", s.name, err)
		}
	}
	places := make(chan struct{}, o.parallel)
	var running sync.WaitGroup
	for i, s := range scenarios {
		if !s.isOverload {
			places <- struct{}{}
			running.Go(func() { judge(i); <-places })
		}
	}
	running.Wait()
	for i, s := range scenarios {
		if s.isOverload {
			judge(i)
		}
	}
	return results, errors.Join(failed...)
}

// judge runs all tools in one scenario. They run at the same time, because each needs only a small part of a core. In an overload,
// the senders need the most, so there are two at a time.
func (o options) judge(s scenario, tools []tool) ([]result, error) {
	programs, err := filepath.Abs(o.programs)
	if err != nil {
		return nil, fmt.Errorf("find programs: %w", err)
	}
	atATime := len(tools)
	if s.isOverload {
		atATime = 2
	}
	results, failed := make([]result, len(tools)), make([]error, len(tools))
	places := make(chan struct{}, atATime)
	var running sync.WaitGroup
	for i, one := range tools {
		places <- struct{}{}
		running.Go(func() {
			results[i], failed[i] = o.try(s, one, programs)
			<-places
		})
	}
	running.Wait()
	return results, errors.Join(failed...)
}

// try runs one tool in one scenario.
func (o options) try(s scenario, one tool, programs string) (result, error) {
	lasts := thorough
	if o.isQuick {
		lasts = quick
	}
	dir, err := os.MkdirTemp("", "judge")
	if err != nil {
		return result{}, fmt.Errorf("create directory: %w", err)
	}
	defer os.RemoveAll(dir)
	return runTrial(one, s, lasts, bench{dir: dir, programs: programs})
}
