package main

import (
	"bufio"
	"errors"
	"fmt"
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

// Exit codes of failures.
const (
	exitFailure     = 1
	exitUsage       = 2 // invalid command line or environment
	exitUnreachable = 3 // the daemon does not respond
)

func main() { os.Exit(execute(os.Args[1:])) }

// logFlushTimeout is the maximum time that the process waits at its end until the last log lines are
// written.
const logFlushTimeout = time.Second

// execute runs one command line and returns the exit code. It writes an error to stderr, one line per
// reason.
func execute(args []string) int {
	stdout := bufio.NewWriter(os.Stdout)
	stderr := logqueue.New(os.Stderr) // a stuck reader of stderr must not block the daemon
	defer stderr.Close(logFlushTimeout)
	root := newRootCommand()
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := commandline.Run(root, args)
	flushErr := stdout.Flush()
	if err == nil && flushErr != nil {
		err = fmt.Errorf("write output: %w", flushErr)
	}
	if err == nil {
		return 0
	}
	text := strings.ReplaceAll(err.Error(), "\t", "  ")
	fmt.Fprintf(stderr, "spanstatsd: %s\n", sanitize.Lines(text))
	return exitCode(err)
}

// exitCode returns the exit code of the program for an error.
func exitCode(err error) int {
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
	variables := map[string]string{} // name of the environment variable of each flag that was set by one
	root := &cobra.Command{
		Use:   "spanstatsd",
		Short: "Compute statistics over finished spans in a sidecar",
		Long: `spanstatsd is a sidecar that computes request, error and latency statistics over
finished spans, so that the traced process does not have to. It receives spans
through a Unix socket, or as OTLP, Datadog or Zipkin requests, and exports the
statistics to Prometheus, as OTLP metrics, or to the Datadog agent. Counters
account for every span.`,
		Version: version,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			used, err := commandline.ApplyEnvironment(cmd)
			maps.Copy(variables, used)
			return err //nolint:wrapcheck // the error names the variable
		},
	}
	root.AddCommand(
		newRunCommand(variables),
		newStatusCommand(),
		newDoctorCommand(),
		newPlanCommand(variables),
		newSLOCommand(),
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

// newManCommand returns the command that writes the manual pages of a release.
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

// version is set by the Makefile. A program of `go install` has the version of its module.
var version = "dev"

func init() {
	info, ok := debug.ReadBuildInfo()
	if ok && version == "dev" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit, and the version of Go",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

// versionText returns the output of the command version, for example
// "spanstatsd v0.2.0 go1.26.0 linux/amd64 5c78d155". It has no commit if Go did not record one.
func versionText() string {
	fields := []string{"spanstatsd", version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if commit := buildCommit(); commit != "" {
		fields = append(fields, commit)
	}
	return strings.Join(fields, " ") + "\n"
}

// buildCommit returns the Git commit from which the program was built, or "" if Go did not record it.
func buildCommit() string {
	info, hasInfo := debug.ReadBuildInfo()
	if !hasInfo {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}

// isTerminal reports whether a file is a terminal, rather than a regular file or a pipe.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
