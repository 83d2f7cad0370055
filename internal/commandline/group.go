package commandline

import (
	"strings"

	"github.com/spf13/pflag"
)

// Group is the flags of a command under one heading. A flag is one line of it, which is the only
// source of its place, its rank and its text: help and the manual page have the same groups, in
// them the flags of the first rank before the rest, and the same texts. A text stands alone, and
// ends with "(default: ...)" where the default is no value.
type Group struct {
	Title string
	First *pflag.FlagSet // that people turn first
	Rest  *pflag.FlagSet
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

// InGroup is the annotation of a flag with the title of its group.
const InGroup = "spanstatsd_group"

// All has the flags of both ranks, in order.
func (g *Group) All() *pflag.FlagSet {
	all := pflag.NewFlagSet(g.Title, pflag.ContinueOnError)
	all.SortFlags = false
	all.AddFlagSet(g.First)
	all.AddFlagSet(g.Rest)
	return all
}

// AddGroups adds the flags of groups to those of a command.
func AddGroups(to *pflag.FlagSet, groups []*Group) {
	to.SortFlags = false
	for _, g := range groups {
		g.All().VisitAll(func(f *pflag.Flag) {
			Annotate(f, InGroup, g.Title)
			to.AddFlag(f)
		})
	}
}

// ungrouped are the flags of a command that no group has, sorted by name.
func ungrouped(flags *pflag.FlagSet) *pflag.FlagSet {
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[InGroup] == nil {
			rest.AddFlag(f)
		}
	})
	return rest
}

// Annotate notes something of a flag.
func Annotate(f *pflag.Flag, kind, note string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[kind] = []string{note}
}

// Note is what was noted, "" for nothing.
func Note(f *pflag.Flag, kind string) string { return strings.Join(f.Annotations[kind], "") }

// TextAndDefault cuts what a flag's text says of its default off, and adds the default itself
// where there is one to be shown.
func TextAndDefault(f *pflag.Flag) (text, standard string) {
	text, standard, found := strings.Cut(f.Usage, " (default: ")
	if found {
		return text, strings.TrimSuffix(standard, ")")
	}
	if f.DefValue == "[]" {
		return text, ""
	}
	return text, f.DefValue
}
