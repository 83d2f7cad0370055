package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// allFlag is the flag that has help show every flag.
const allFlag = "all"

// widestHelp is how many columns help fills of a terminal that has more, or of no terminal.
const widestHelp = 100

// showGroups has help of a command show the flags of groups under their headings: those of the
// first rank, or all that there are.
func showGroups(cmd *cobra.Command, groups []*flagGroup) {
	var all bool
	cmd.Flags().BoolVar(&all, allFlag, false, "with --help: show every flag")
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		w := cmd.OutOrStderr()
		width, _ := window(w)
		if !isTerminal(w) {
			width = widestHelp
		}
		writeUsage(w, cmd, groups, all, min(width, widestHelp))
		return nil
	})
}

func writeUsage(w io.Writer, cmd *cobra.Command, groups []*flagGroup, all bool, width int) {
	fmt.Fprintf(w, "Usage:\n  %s\n", cmd.UseLine())
	hidden := 0
	for _, g := range groups {
		flags := g.all()
		if !all {
			flags = g.first
			g.rest.VisitAll(func(*pflag.Flag) { hidden++ })
		}
		fmt.Fprintf(w, "\n%s:\n%s", g.title, flags.FlagUsagesWrapped(width))
	}
	fmt.Fprintf(w, "\nBeside these:\n%s", ungrouped(cmd.Flags()).FlagUsagesWrapped(width))
	if !all {
		fmt.Fprintf(w, "\nThese are the flags that people turn first. There are %d more: %s --help --all\n", hidden, cmd.CommandPath())
	}
}

// completeValues has a shell complete what flags take: words where there are only a few, files and
// directories.
func completeValues(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		var complete cobra.CompletionFunc
		switch kind := f.Value.Type(); {
		case strings.Contains(kind, "|"):
			complete = cobra.FixedCompletions(strings.Split(kind, "|"), cobra.ShellCompDirectiveNoFileComp)
		case kind == pathKind:
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		case kind == directoryKind:
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		default:
			complete = cobra.NoFileCompletions
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
			panic("BUG: a flag can't be completed: " + err.Error())
		}
	})
	for _, below := range cmd.Commands() {
		completeValues(below)
	}
}
