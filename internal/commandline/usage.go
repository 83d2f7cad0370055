// Package commandline adds to cobra what the commands of this project share: flags in groups, values that
// validate themselves, environment variables, usage errors and manual pages.
//
// # What it owns
//
// A flag is one line of a Group, with its value, its default and its text. Help and the manual page come
// from that line. A value is parsed when it is given, so that an error names the flag or the variable. Each
// flag has an environment variable; an unknown variable with the project's prefix is an error. Everything
// that is wrong before a command runs is a UsageError.
//
// # Concurrency
//
// Commands are made and run by one goroutine. The package starts no goroutine and keeps no state, except for
// the completion functions that cobra keeps per flag.
package commandline

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// AllFlag is the flag that makes help show every flag.
const AllFlag = "all"

// helpColumns is the width of help.
const helpColumns = 100

// Group is the flags of a command under one heading. A flag's text ends with "(default: ...)" if the
// default is not a value.
type Group struct {
	Title string
	First *pflag.FlagSet // shown by --help
	Rest  *pflag.FlagSet // shown by --help --all as well
}

// NewGroup returns a group without flags.
func NewGroup(title string) *Group {
	g := &Group{
		title, pflag.NewFlagSet(title, pflag.ContinueOnError),
		pflag.NewFlagSet(title, pflag.ContinueOnError),
	}
	g.First.SortFlags, g.Rest.SortFlags = false, false
	return g
}

// All returns all flags of the group, in order.
func (g *Group) All() *pflag.FlagSet {
	all := pflag.NewFlagSet(g.Title, pflag.ContinueOnError)
	all.SortFlags = false
	all.AddFlagSet(g.First)
	all.AddFlagSet(g.Rest)
	return all
}

// AddGroups adds the flags of groups to a command, and makes its help show them under their headings.
func AddGroups(cmd *cobra.Command, groups []*Group) {
	grouped := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, g := range groups {
		grouped.AddFlagSet(g.All())
	}
	grouped.SortFlags, cmd.Flags().SortFlags = false, false
	cmd.Flags().AddFlagSet(grouped)
	all := cmd.Flags().Bool(AllFlag, false, "with --help: show every flag")
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		out, hidden := cmd.OutOrStderr(), 0
		fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
		for _, g := range groups {
			flags := g.All()
			if !*all {
				flags = g.First
				g.Rest.VisitAll(func(*pflag.Flag) { hidden++ })
			}
			fmt.Fprintf(out, "\n%s:\n%s", g.Title, flags.FlagUsagesWrapped(helpColumns))
		}
		others := pflag.NewFlagSet("", pflag.ContinueOnError)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if grouped.Lookup(f.Name) == nil {
				others.AddFlag(f)
			}
		})
		fmt.Fprintf(out, "\nOther flags:\n%s", others.FlagUsagesWrapped(helpColumns))
		if !*all {
			fmt.Fprintf(out, "\nThese are the flags that people turn first. There are %d more: %s --help "+
				"--all\n", hidden, cmd.CommandPath())
		}
		return nil
	})
}

// CompleteValues makes a shell complete the values of all flags: words, files and directories.
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
	for _, below := range cmd.Commands() {
		CompleteValues(below)
	}
}

// WritePages writes the manual pages of a command and of its subcommands into a directory. A page is the
// command's help with every flag, without a date, so that it is reproducible. (cobra/doc would add a Markdown
// parser to the daemon.)
func WritePages(cmd *cobra.Command, dir string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if cmd.Flags().Lookup(AllFlag) != nil {
		if err := cmd.Flags().Set(AllFlag, "true"); err != nil {
			return fmt.Errorf("write manual page: %w", err)
		}
	}
	cmd.InitDefaultHelpFlag()
	page := fmt.Sprintf(".TH \"%s\" \"1\" \"\" \"spanstatsd %s\" \"spanstatsd\"\n"+
		".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n%s\n.fi\n.SH OPTIONS\n.nf\n%s.fi\n"+
		".SH EXIT STATUS\n0 for success, 2 for an invalid command line or environment variable, "+
		"3 if no daemon answers, 1 for any other failure.\n",
		strings.ToUpper(name), escape(cmd.Root().Version), escape(name), escape(cmd.Short),
		escape(cmp.Or(cmd.Long, cmd.Short+".")), escape(cmd.UsageString()))
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(page), 0o644); err != nil {
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() && below.Name() != "completion" && below.Name() != "help" {
			if err := WritePages(below, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// escape keeps roff from reading a text as requests.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
