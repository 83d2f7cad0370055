package commandline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
