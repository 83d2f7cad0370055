package commandline

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// AllFlag is the flag that has help show every flag.
const AllFlag = "all"

// columns is how wide help is.
const columns = 100

// ShowGroups has help of a command show the flags of groups under their headings: those of the
// first rank, or all that there are.
func ShowGroups(cmd *cobra.Command, groups []*Group) {
	var all bool
	cmd.Flags().BoolVar(&all, AllFlag, false, "with --help: show every flag")
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		writeUsage(cmd.OutOrStderr(), cmd, groups, all)
		return nil
	})
}

func writeUsage(w io.Writer, cmd *cobra.Command, groups []*Group, all bool) {
	fmt.Fprintf(w, "Usage:\n  %s\n", cmd.UseLine())
	hidden := 0
	for _, g := range groups {
		flags := g.All()
		if !all {
			flags = g.First
			g.Rest.VisitAll(func(*pflag.Flag) { hidden++ })
		}
		fmt.Fprintf(w, "\n%s:\n%s", g.Title, flags.FlagUsagesWrapped(columns))
	}
	fmt.Fprintf(w, "\nBeside these:\n%s", ungrouped(cmd.Flags()).FlagUsagesWrapped(columns))
	if !all {
		fmt.Fprintf(w, "\nThese are the flags that people turn first. There are %d more: %s --help --all\n",
			hidden, cmd.CommandPath())
	}
}

// CompleteValues has a shell complete what flags take: words where there are only a few, files and
// directories.
func CompleteValues(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		var complete cobra.CompletionFunc
		switch kind := f.Value.Type(); {
		case strings.Contains(kind, "|"):
			complete = cobra.FixedCompletions(strings.Split(kind, "|"), cobra.ShellCompDirectiveNoFileComp)
		case kind == Path:
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		case kind == Directory:
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		default:
			complete = cobra.NoFileCompletions
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
			panic("BUG: a flag can't be completed: " + err.Error())
		}
	})
	for _, below := range cmd.Commands() {
		CompleteValues(below)
	}
}
