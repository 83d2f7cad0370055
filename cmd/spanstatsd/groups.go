package main

import (
	"strings"

	"github.com/spf13/pflag"
)

// flagGroup is the flags of run under one heading. A flag is one line of it, which is the only
// source of its place, its rank and its text: help, the manual page and docs/tuning.md have the
// same groups, in them the flags of the first rank before the rest, and the same texts. A text
// stands alone, and ends with "(default: ...)" where the default is no value.
type flagGroup struct {
	title string
	first *pflag.FlagSet // that people turn first
	rest  *pflag.FlagSet
}

func newFlagGroup(title string) *flagGroup {
	g := &flagGroup{title, pflag.NewFlagSet(title, pflag.ContinueOnError), pflag.NewFlagSet(title, pflag.ContinueOnError)}
	g.first.SortFlags, g.rest.SortFlags = false, false
	return g
}

// inGroup is the annotation of a flag with the title of its group.
const inGroup = "spanstatsd_group"

// all has the flags of both ranks, in order.
func (g *flagGroup) all() *pflag.FlagSet {
	all := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
	all.SortFlags = false
	all.AddFlagSet(g.first)
	all.AddFlagSet(g.rest)
	return all
}

// addGroups adds the flags of groups to those of a command.
func addGroups(to *pflag.FlagSet, groups []*flagGroup) {
	to.SortFlags = false
	for _, g := range groups {
		g.all().VisitAll(func(f *pflag.Flag) {
			annotate(f, inGroup, g.title)
			to.AddFlag(f)
		})
	}
}

// ungrouped are the flags of a command that no group has, sorted by name.
func ungrouped(flags *pflag.FlagSet) *pflag.FlagSet {
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[inGroup] == nil {
			rest.AddFlag(f)
		}
	})
	return rest
}

// annotate notes something of a flag.
func annotate(f *pflag.Flag, kind, note string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[kind] = []string{note}
}

// note is what was noted, "" for nothing.
func note(f *pflag.Flag, kind string) string { return strings.Join(f.Annotations[kind], "") }

// textAndDefault cuts what a flag's text says of its default off, and adds the default itself
// where there is one to be shown.
func textAndDefault(f *pflag.Flag) (text, standard string) {
	text, standard, found := strings.Cut(f.Usage, " (default: ")
	if found {
		return text, strings.TrimSuffix(standard, ")")
	}
	if f.DefValue == "[]" {
		return text, ""
	}
	return text, f.DefValue
}
