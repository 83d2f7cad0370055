// Package commandline adds to cobra what the commands of this project share: flags in groups, values that
// validate themselves, environment variables, usage errors and manual pages.
//
// A flag is declared once, in a Group, with its value, its default and its text. Help and the manual page show
// that declaration. A value is parsed when it is given, so that an error names the flag or the variable. Each
// flag has an environment variable; an unknown variable with the project's prefix is an error. Everything
// that is wrong before a command runs is a UsageError.
//
// Commands are made and run by one goroutine. The package starts no goroutine and keeps no state.
package commandline

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// UsageError is a mistake in the command line or the environment.
type UsageError struct{ error }

func (u UsageError) Unwrap() error { return u.error }

// Mistake returns a UsageError with a text.
func Mistake(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// AsUsage joins errors to a UsageError. It returns nil if all are nil.
func AsUsage(mistakes ...error) error {
	if all := errors.Join(mistakes...); all != nil {
		return UsageError{all}
	}
	return nil
}

// Run runs a program's command line. An error before a command starts is a UsageError.
func Run(root *cobra.Command, args []string) error {
	started, prepare := false, root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) (err error) {
		if prepare != nil {
			err = prepare(cmd, args)
		}
		started = err == nil
		return err
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

// AllFlag is the flag that makes help show every flag.
const AllFlag = "all"

// helpColumns is the width of help.
const helpColumns = 100

// Group is the flags of a command under one heading of its help. A flag's text ends with "(default: ...)" if
// the default is not a value.
type Group struct {
	Title string
	Flags *pflag.FlagSet
}

// NewGroup returns a group without flags. It keeps them in the order of their declarations.
func NewGroup(title string) Group {
	flags := pflag.NewFlagSet(title, pflag.ContinueOnError)
	flags.SortFlags = false
	return Group{title, flags}
}

// AddGroups adds the flags of groups to a command. Its help shows the flags under the headings of
// their groups: the common flags, or all of them with --all.
func AddGroups(cmd *cobra.Command, common []string, groups ...Group) {
	cmd.Flags().SortFlags = false
	for _, g := range groups {
		cmd.Flags().AddFlagSet(g.Flags)
	}
	all := cmd.Flags().Bool(AllFlag, false, "with --help: show every flag")
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		others, hidden := NewGroup("Other flags"), 0
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			isGrouped := slices.ContainsFunc(groups, func(g Group) bool { return g.Flags.Lookup(f.Name) != nil })
			f.Hidden = isGrouped && !*all && !slices.Contains(common, f.Name)
			if f.Hidden {
				hidden++
			}
			if !isGrouped {
				others.Flags.AddFlag(f)
			}
		})
		out := cmd.OutOrStderr()
		fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
		for _, g := range append(slices.Clip(groups), others) {
			fmt.Fprintf(out, "\n%s:\n%s", g.Title, g.Flags.FlagUsagesWrapped(helpColumns))
		}
		if hidden > 0 {
			fmt.Fprintf(out, "\nThese are the most common flags. There are %d more: %s --help --all\n", hidden,
				cmd.CommandPath())
		}
		return nil
	})
}

// CompleteValues enables shell completion for the values of all flags of a command and its
// subcommands: words, files and directories.
func CompleteValues(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		complete := cobra.NoFileCompletions
		switch kind := f.Value.Type(); {
		case strings.Contains(kind, "|"):
			complete = cobra.FixedCompletions(strings.Split(kind, "|"), cobra.ShellCompDirectiveNoFileComp)
		case kind == Path:
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		case kind == Directory:
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
			panic("BUG: a flag can't be completed: " + err.Error())
		}
	})
	for _, sub := range cmd.Commands() {
		CompleteValues(sub)
	}
}

// WritePages writes the manual pages of a command and of its subcommands into a directory. A page is the
// command's help with every flag, without a date, so that it is reproducible. (cobra/doc would add a Markdown
// and a YAML parser to the program, and has no groups of flags.)
func WritePages(cmd *cobra.Command, dir string) error {
	if all := cmd.Flags().Lookup(AllFlag); all != nil {
		_ = all.Value.Set("true") // the flag is a boolean, so this can't fail
	}
	cmd.InitDefaultHelpFlag()
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	page := fmt.Sprintf(".TH \"%s\" \"1\" \"\" \"spanstatsd %s\" \"spanstatsd\"\n.SH NAME\n%s \\- %s\n"+
		".SH DESCRIPTION\n.nf\n%s\n.fi\n.SH OPTIONS\n.nf\n%s.fi\n.SH EXIT STATUS\n"+
		"0 for success, 2 for an invalid command line or environment variable, 3 if no daemon answers, 1 for "+
		"any other failure.\n", strings.ToUpper(name), escape(cmd.Root().Version), escape(name),
		escape(cmd.Short), escape(cmp.Or(cmd.Long, cmd.Short+".")), escape(cmd.UsageString()))
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(page), 0o644); err != nil {
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" {
			if err := WritePages(sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// escape escapes text for roff. The first line of a text must not begin with a dot or an
// apostrophe, which would be a roff request.
var escape = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace
