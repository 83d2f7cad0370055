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
			return UsageError{fmt.Errorf("%s takes %s, but got %q; see %s --help", cmd.Name(), what, args, cmd.CommandPath())}
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
	return UsageError{fmt.Errorf("there is no command %q%s; see spanstatsd --help", strings.Join(args, " "), didYouMean("", near))}
}
