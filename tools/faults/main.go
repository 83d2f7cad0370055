// Command faults tests every fault in docs/faults.md, and prints whether the promise held.
//
//	go run ./faults [-only TEXT] ROOT
//
// The list is in the document's tables: a row contains the fault, the promise, the package, and
// the test or subtest. So the promised and the tested faults are the same. A promise whose test
// does not run does not hold.
//
// The exit code is 1 if a promise did not hold, and 2 if the list is invalid.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	only := flag.String("only", "", "try the faults whose row has this text")
	flag.Parse()
	err := run(flag.Arg(0), *only, os.Stdout)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "faults:", err)
	if errors.Is(err, errBroken) {
		os.Exit(1)
	}
	os.Exit(2)
}

var errBroken = errors.New("a promise did not hold")

func run(root, only string, out io.Writer) error {
	if root == "" {
		return errors.New("want the repository's root as the only argument")
	}
	faults, err := readFaults(root, only)
	if err != nil {
		return err
	}
	results, err := try(root, faults, out)
	if err != nil {
		return err
	}
	return report(faults, results, out)
}

// report prints the table of fault, promise and verdict.
func report(faults []fault, results map[string]string, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FAULT\tPROMISE\tVERDICT")
	held := 0
	for _, f := range faults {
		verdict := results[f.key()]
		switch verdict {
		case "pass":
			verdict = "held"
			held++
		case "fail":
			verdict = "BROKEN: " + f.test
		default:
			verdict = "NOT TRIED: " + f.test
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.what, f.promise, verdict)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	fmt.Fprintf(out, "%d of %d promises held\n", held, len(faults))
	if held < len(faults) {
		return fmt.Errorf("%d of %d: %w", len(faults)-held, len(faults), errBroken)
	}
	return nil
}
