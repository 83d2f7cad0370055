package commandline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Takes refuses all words but so many, and says what they are.
func Takes(count int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != count {
			return UsageError{
				fmt.Errorf("%s takes %s, but got %q; see %s --help", cmd.Name(), what, args,
					cmd.CommandPath()),
			}
		}
		return nil
	}
}

// NoArguments refuses words that no flag takes.
var NoArguments = Takes(0, "no argument")

// NoCommand says that there is no such command, and which may have been meant.
func NoCommand(parent *cobra.Command, args []string) error {
	var near string
	if names := parent.SuggestionsFor(args[len(args)-1]); len(names) > 0 {
		near = names[0]
	}
	return UsageError{
		fmt.Errorf("there is no command %q%s; see %s --help", strings.Join(args, " "), didYouMean("", near),
			parent.Root().Name()),
	}
}

// UsageOf makes usage errors of what a command says of its words, those of the library
// included, and has a command that only leads to others refuse any word that is none.
func UsageOf(cmd *cobra.Command) {
	checked := cmd.Args
	if !cmd.Runnable() {
		checked = NoArguments
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if checked != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := checked(cmd, args); err != nil {
				return UsageError{err}
			}
			return nil
		}
	}
	for _, below := range cmd.Commands() {
		UsageOf(below)
	}
}
