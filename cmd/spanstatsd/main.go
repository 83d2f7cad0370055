package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/logqueue"
	"github.com/spanstatsd/spanstatsd/internal/shown"
)

// Exit codes: 2 for a command line that can't be used, 3 for a daemon that does
// not answer, 1 for everything else that fails afterwards.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitUnreachable = 3
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// lastLines is how long the end of a process waits for its last lines to be read.
const lastLines = time.Second

// execute runs one command line and returns the exit code. An error is on stderr,
// one line a reason; what a daemon or a file put into it can't act on a terminal.
// A stderr that nobody reads holds nothing up.
func execute(args []string, stdout, to io.Writer) int {
	stderr := logqueue.New(to)
	defer stderr.Close(lastLines)
	out := &output{to: stdout}
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(commandline.WithArguments(context.Background(), args))
	if err == nil {
		err = out.failure()
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "spanstatsd: %s\n", shown.Lines(err.Error()))
	var usage commandline.UsageError
	var unreachable unreachableError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &unreachable):
		return exitUnreachable
	}
	return exitFailure
}
