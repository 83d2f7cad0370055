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

// AsUsage returns a UsageError that joins the given errors. It returns nil if all of them are nil.
func AsUsage(mistakes ...error) error {
	joined := errors.Join(mistakes...)
	if joined == nil {
		return nil
	}
	return UsageError{joined}
}

// Run parses args and runs the command that they select. It returns a UsageError if the command does not start,
// because args are invalid or the PersistentPreRunE of root fails. Otherwise it returns the error of the command.
func Run(root *cobra.Command, args []string) error {
	isStarted := false
	preRun := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if preRun != nil {
			if err := preRun(cmd, args); err != nil {
				return err
			}
		}
		isStarted = true // cobra runs the command next
		return nil
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	root.SilenceUsage = true
	root.SilenceErrors = true
	root.SetArgs(args)
	err := root.Execute()
	if !isStarted {
		return AsUsage(err) // nil if cobra has printed the help or the version instead
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

// NewGroup returns a group without flags. Help shows the flags of a group in the order of their declarations.
func NewGroup(title string) Group {
	flags := pflag.NewFlagSet(title, pflag.ContinueOnError)
	flags.SortFlags = false
	return Group{title, flags}
}

// AddGroups adds the flags of groups to a command, and a flag --all. The help of the command shows flags under the
// titles of their groups. Without --all, it omits the flags of groups whose names are not in commonFlags.
func AddGroups(cmd *cobra.Command, commonFlags []string, groups ...Group) {
	cmd.Flags().SortFlags = false
	for _, g := range groups {
		cmd.Flags().AddFlagSet(g.Flags)
	}
	showAll := cmd.Flags().Bool(AllFlag, false, "with --help: show every flag")
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		isShown := func(name string) bool { return *showAll || slices.Contains(commonFlags, name) }
		hiddenFlags := hideFlags(cmd, groups, isShown)
		allGroups := slices.Concat(groups, []Group{otherFlags(cmd, groups)})
		writeUsage(cmd, allGroups, hiddenFlags)
		return nil
	})
}

// hideFlags hides the flags of groups for which isShown returns false, and returns their number.
func hideFlags(cmd *cobra.Command, groups []Group, isShown func(name string) bool) (hidden int) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !isInGroup(groups, f) {
			return
		}
		f.Hidden = !isShown(f.Name)
		if f.Hidden {
			hidden++
		}
	})
	return hidden
}

// otherFlags returns the flags of a command that are in none of the groups.
func otherFlags(cmd *cobra.Command, groups []Group) Group {
	others := NewGroup("Other flags")
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !isInGroup(groups, f) {
			others.Flags.AddFlag(f)
		}
	})
	return others
}

// isInGroup reports whether one of the groups contains a flag with the name of f.
func isInGroup(groups []Group, f *pflag.Flag) bool {
	return slices.ContainsFunc(groups, func(g Group) bool { return g.Flags.Lookup(f.Name) != nil })
}

// writeUsage writes the usage line of a command, and the flags in all groups except for hidden flags. If any flags are
// hidden, writeUsage also mentions --all.
func writeUsage(cmd *cobra.Command, groups []Group, hiddenFlags int) {
	out := cmd.OutOrStderr()
	fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
	for _, g := range groups {
		fmt.Fprintf(out, "\n%s:\n%s", g.Title, g.Flags.FlagUsagesWrapped(helpColumns))
	}
	if hiddenFlags > 0 {
		fmt.Fprintf(out, "\nThese are the most common flags. There are %d more: %s --help --all\n", hiddenFlags,
			cmd.CommandPath())
	}
}

// CompleteValues enables shell completion for the values of all flags of a command and of its subcommands.
func CompleteValues(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if err := cmd.RegisterFlagCompletionFunc(f.Name, completionFor(f.Value.Type())); err != nil {
			panic("BUG: a flag can't be completed: " + err.Error())
		}
	})
	for _, subcommand := range cmd.Commands() {
		CompleteValues(subcommand)
	}
}

// completionFor returns the shell completion for a flag whose value has the given type. It completes files for
// Path, directories for Directory, and "on" and "off" for the type "on|off". It completes nothing for other types.
func completionFor(valueType string) cobra.CompletionFunc {
	if words := strings.Split(valueType, "|"); len(words) > 1 {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	switch valueType {
	case Path:
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	case Directory:
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	}
	return cobra.NoFileCompletions
}

// WritePages writes the manual pages of a command and of its subcommands into a directory.
func WritePages(cmd *cobra.Command, dir string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manualPage(cmd, name)), 0o644); err != nil {
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, subcommand := range cmd.Commands() {
		if !subcommand.IsAvailableCommand() || subcommand.Name() == "completion" {
			continue
		}
		if err := WritePages(subcommand, dir); err != nil {
			return err
		}
	}
	return nil
}

// manualPage returns the manual page of a command in roff: its help with every flag. The page contains no date, so
// that it is reproducible. cobra/doc is not used, because it does not support groups of flags and has many
// dependencies.
func manualPage(cmd *cobra.Command, name string) string {
	if showAll := cmd.Flags().Lookup(AllFlag); showAll != nil {
		_ = showAll.Value.Set("true") // for UsageString; setting a boolean to true can't fail
	}
	cmd.InitDefaultHelpFlag()
	title := strings.ToUpper(name)
	version := escape(cmd.Root().Version)
	description := cmp.Or(cmd.Long, cmd.Short+".")
	return fmt.Sprintf(pageFormat, title, version, escape(name), escape(cmd.Short), escape(description),
		escape(cmd.UsageString()))
}

// pageFormat is a manual page with placeholders for the title, the version, the name, a summary, a description and
// the usage.
const pageFormat = `.TH "%s" "1" "" "spanstatsd %s" "spanstatsd"
.SH NAME
%s \- %s
.SH DESCRIPTION
.nf
%s
.fi
.SH OPTIONS
.nf
%s.fi
.SH EXIT STATUS
0 for success, 2 for an invalid command line or environment variable, 3 if no daemon answers, 1 for any other failure.
`

// escape escapes text for roff. The first line of a text must not begin with a dot or an
// apostrophe, which would be a roff request.
var escape = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace
