// Command mutants asks whether the tests hold what the code guards: it applies one small
// wrong change after the other, and each must make a test fail.
//
//	go run ./mutants [-only TEXT] [-check] ROOT
//
// The changes stand beside the tests that hold them, in a file mutants.txt of each
// package; list.go says how. The tree itself is never written: the go command is given
// each changed file as an overlay. -check only says whether each change still fits its
// file, and compiles nothing.
//
// It exits 1 if a change survives, and 2 if a list is wrong: a text that its file does
// not have exactly once, a change that does not compile, tests that fail without it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

func main() {
	only := flag.String("only", "", "try the changes whose package, file or reason has this text")
	check := flag.Bool("check", false, "only look whether each change fits its file")
	flag.Parse()
	err := run(flag.Arg(0), *only, *check, os.Stdout)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "mutants:", err)
	if errors.Is(err, errSurvived) {
		os.Exit(1)
	}
	os.Exit(2)
}

var errSurvived = errors.New("no test failed: write one, or take the guard out of the code")

func run(root, only string, check bool, out io.Writer) error {
	if root == "" {
		return errors.New("want the module's root as the one argument")
	}
	mutants, err := readLists(root)
	if err != nil {
		return err
	}
	mutants = selected(mutants, only)
	if check {
		fmt.Fprintln(out, len(mutants), "changes, each fits its file")
		return nil
	}
	return tryAll(root, mutants, out)
}

func selected(mutants []mutant, only string) (chosen []mutant) {
	for _, m := range mutants {
		if strings.Contains(m.file+" "+m.why, only) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// verdict is what became of one change.
type verdict struct {
	killer string
	took   time.Duration
	err    error
}

// atATime is how many changes are tried at once: most of a test's time is waiting, or one processor's.
var atATime = max(2, runtime.GOMAXPROCS(0))

// tryTogether tries some at a time, and gives each verdict on a channel of its own, in their order.
func tryTogether(t *trial, mutants []mutant) []chan verdict {
	verdicts := make([]chan verdict, len(mutants))
	for i := range verdicts {
		verdicts[i] = make(chan verdict, 1)
	}
	var next atomic.Int64
	for range atATime {
		go func() {
			for i := next.Add(1) - 1; i < int64(len(mutants)); i = next.Add(1) - 1 {
				begun := time.Now()
				killer, err := t.try(mutants[i])
				verdicts[i] <- verdict{killer, time.Since(begun), err}
			}
		}()
	}
	return verdicts
}

// tryAll prints a line a change, and says at the end which survived.
func tryAll(root string, mutants []mutant, out io.Writer) error {
	t, err := newTrial(root)
	if err != nil {
		return err
	}
	defer t.close()
	table, begun := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), time.Now()
	survivors, wrong := 0, error(nil)
	for i, tried := range tryTogether(t, mutants) {
		m, verdict := &mutants[i], <-tried
		switch {
		case verdict.err != nil: // the others are tried all the same
			wrong = errors.Join(wrong, fmt.Errorf("try %s (%s): %w", m.file, m.why, verdict.err))
			verdict.killer = "NOT TRIED"
		case verdict.killer == "":
			survivors++
			verdict.killer = "SURVIVED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.file, m.why, verdict.killer,
			verdict.took.Round(time.Second/10))
		table.Flush()
	}
	fmt.Fprintf(out, "%d of %d changes survived, in %s\n", survivors, len(mutants),
		time.Since(begun).Round(time.Second))
	if wrong != nil {
		return wrong
	}
	if survivors > 0 {
		return fmt.Errorf("%d changes survived: %w", survivors, errSurvived)
	}
	return nil
}
