package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/logging/logqueue"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
	"github.com/spf13/cobra"
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
	root.SetOut(out)
	root.SetErr(stderr)
	err := commandline.Run(root, args)
	if err == nil {
		err = out.failed
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "spanstatsd: %s\n", sanitize.Lines(strings.ReplaceAll(err.Error(), "\t", "  ")))
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

func newRootCommand() *cobra.Command {
	variables := map[string]string{} // that have set flags of the command
	root := &cobra.Command{
		Use:   "spanstatsd",
		Short: "Counts finished spans into statistics, beside the process instead of in it",
		Long: `spanstatsd is a sidecar for processes that are traced. A tracer writes a
snapshot of each finished span to a Unix socket and forgets it; spanstatsd
counts the snapshots into 10-second statistics, sends them to the Datadog agent
and says of every span what became of it.`,
		Version: version,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			used, err := commandline.ApplyEnvironment(cmd)
			maps.Copy(variables, used)
			return err //nolint:wrapcheck // it names the variable
		},
	}
	root.AddCommand(
		newRunCommand(variables),
		newStatusCommand(),
		newDoctorCommand(),
		newConfigCommand(variables),
		newDumpCommand(),
		newPrepareCommand(),
		newWaitCommand(),
		newManCommand(),
		newVersionCommand(),
	)
	root.InitDefaultCompletionCmd()
	root.SetVersionTemplate(versionText())
	commandline.CompleteValues(root)
	return root
}

// newManCommand writes the manual pages that a release carries.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write a manual page for each command into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return commandline.WritePages(cmd.Root(), args[0])
		},
	}
}

// version is set by the Makefile's build; `go build` or `go run` alone leaves
// it and names the commit instead where Go recorded one.
var version = "0.1.0-dev"

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the Go that built it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

func versionText() string {
	return fmt.Sprintf("spanstatsd %s %s %s/%s%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		commit())
}

// commit is the revision that Go recorded while building, if it did.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return " " + setting.Value
		}
	}
	return ""
}

// output is stdout. It remembers the first write error, because no command checks every line that it prints.
type output struct {
	to     io.Writer
	failed error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil && o.failed == nil {
		o.failed = fmt.Errorf("write output: %w", err)
	}
	return n, err //nolint:wrapcheck // a writer's own
}

// To returns the writer below.
func (o *output) To() io.Writer { return o.to }

// fileOf is the file that an output, or a log's queue, writes to.
func fileOf(w io.Writer) (file *os.File, ok bool) {
	if before, is := w.(interface{ To() io.Writer }); is {
		w = before.To()
	}
	file, ok = w.(*os.File)
	return file, ok
}
