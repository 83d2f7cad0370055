package commandline

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// UsageError is a mistake in the command line or the environment.
type UsageError struct{ error }

func (u UsageError) Unwrap() error { return u.error }

// Mistake returns a UsageError with a text.
func Mistake(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// AsUsage joins errors to a UsageError, nil for none.
func AsUsage(mistakes ...error) error {
	if all := errors.Join(mistakes...); all != nil {
		return UsageError{all}
	}
	return nil
}

// Run runs a program's command line. An error before a command starts is a UsageError.
func Run(root *cobra.Command, args []string) error {
	started, prepare := false, root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if prepare != nil {
			if err := prepare(cmd, args); err != nil {
				return err
			}
		}
		started = true
		return nil
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetArgs(args)
	err := root.Execute()
	if !started {
		return AsUsage(err)
	}
	return err
}
