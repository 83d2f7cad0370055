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
	"strings"
	"text/tabwriter"
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

// tryAll prints a line a change, and says at the end which survived.
func tryAll(root string, mutants []mutant, out io.Writer) error {
	t, err := newTrial(root)
	if err != nil {
		return err
	}
	defer t.close()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	survivors := 0
	for _, m := range mutants {
		killer, err := t.try(m)
		if err != nil {
			return fmt.Errorf("try %s (%s): %w", m.file, m.why, err)
		}
		if killer == "" {
			survivors++
			killer = "SURVIVED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", m.file, m.why, killer)
		table.Flush()
	}
	fmt.Fprintf(out, "%d of %d changes made a test fail\n", len(mutants)-survivors, len(mutants))
	if survivors > 0 {
		return fmt.Errorf("%d changes survived: %w", survivors, errSurvived)
	}
	return nil
}
