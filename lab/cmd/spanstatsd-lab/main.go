package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// Exit codes: 2 for an invalid command line, 1 for every later failure.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs one command line and returns the exit code. It writes the error to stderr, with
// control characters escaped.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := commandline.Run(root, args)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "spanstatsd-lab: %s\n", sanitize.Lines(strings.ReplaceAll(err.Error(), "\t", "  ")))
	var usage commandline.UsageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}
