package commandline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// UsageError is a mistake in the command line or the environment.
type UsageError struct{ error }

func (u UsageError) Unwrap() error { return u.error }

// Mistake is a UsageError of a text.
func Mistake(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// argumentsKey is where the context of a command has the words of its command line.
type argumentsKey struct{}

// WithArguments has a command know the words of its command line.
func WithArguments(ctx context.Context, args []string) context.Context {
	return context.WithValue(ctx, argumentsKey{}, args)
}

// FlagMistake is a usage error that says what to do: which value a flag takes, which flag may
// have been meant, and where the flags are listed.
func FlagMistake(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f := invalid.GetFlag()
		return UsageError{fmt.Errorf("--%s: %w", f.Name, inWords(f, invalid.GetValue(), err))}
	}
	see := cmd.CommandPath() + " --help"
	if cmd.Flags().Lookup(AllFlag) != nil {
		see += " --" + AllFlag
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return UsageError{
			fmt.Errorf("%w%s; see %s", err, didYouMean("--", nearest(unknown.GetSpecifiedName(), names)),
				see),
		}
	}
	return UsageError{fmt.Errorf("%w; see %s", err, see)}
}

// inWords says why a flag's value can't be used, where the library says it in its own words.
func inWords(f *pflag.Flag, given string, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = invalid.Unwrap()
	}
	switch kind := f.Value.Type(); {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%q is too large", given)
	case kind == "duration":
		return fmt.Errorf("%q is no duration: write a number with ms, s, m or h, as 1.5s or 2m30s", given)
	case kind == "int":
		return fmt.Errorf("%q is no number: write digits alone, as 1024", given)
	case kind == "uintSlice":
		return fmt.Errorf("%q is no list of numbers: write them with commas, as 1000,1001", given)
	case kind == "bool":
		return fmt.Errorf("%q is neither true nor false", given)
	}
	return err
}

// everyFlagMistake reads the flags of a command line one after the other, where the
// library would stop at the first that can't be used, and returns all that can't.
func everyFlagMistake(cmd *cobra.Command) (mistakes error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if list, is := f.Value.(pflag.SliceValue); is {
			_ = list.Replace(nil) // what it has already is read once more
		}
	})
	args, _ := cmd.Context().Value(argumentsKey{}).([]string)
	for len(args) > 0 && args[0] != "--" {
		words := 1
		if len(args) > 1 && takesNextWord(cmd.Flags(), args[0]) {
			words = 2
		}
		if err := cmd.Flags().Parse(args[:words]); err != nil {
			mistakes = errors.Join(mistakes, FlagMistake(cmd, err))
			var invalid *pflag.InvalidValueError
			if errors.As(err, &invalid) {
				backToDefault(invalid.GetFlag())
			}
		}
		args = args[words:]
	}
	return mistakes
}

// backToDefault undoes what a text that can't be used left in a flag, so that nothing
// follows from it. A list takes a text whole or not at all.
func backToDefault(f *pflag.Flag) {
	if _, list := f.Value.(pflag.SliceValue); !list {
		_ = f.Value.Set(f.DefValue)
	}
}

// takesNextWord says whether a word is a flag whose value is the next one.
func takesNextWord(flags *pflag.FlagSet, word string) bool {
	name, isFlag := strings.CutPrefix(word, "--")
	flag := flags.Lookup(name)
	return isFlag && flag != nil && flag.NoOptDefVal == ""
}

// AsUsage joins what is wrong with a command line, nil for nothing.
func AsUsage(mistakes ...error) error {
	if all := errors.Join(mistakes...); all != nil {
		return UsageError{all}
	}
	return nil
}

// NameAll has a command name all that is wrong with its command line, its variables and what
// comes of them at once. The check applies the environment, and returns all that is wrong then.
func NameAll(cmd *cobra.Command, check func(*cobra.Command) error) {
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // the check does it
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, _ error) error {
		return AsUsage(everyFlagMistake(cmd), check(cmd))
	})
}
