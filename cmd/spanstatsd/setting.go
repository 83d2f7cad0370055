package main

import (
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spf13/pflag"
)

// fromVariable is the annotation of a flag whose value an environment variable
// chose; its value is the variable's name.
const fromVariable = "spanstatsd_from_variable"

// forMemory is that of a flag whose default was made smaller; its value is what
// sets the limit.
const forMemory = "spanstatsd_for_memory"

// annotate notes what a flag's value came from.
func annotate(f *pflag.Flag, kind, from string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[kind] = []string{from}
}

// setting is a flag's value and who chose it.
func setting(f *pflag.Flag) health.Setting {
	s := health.Setting{Name: f.Name, Value: f.Value.String(), Default: f.DefValue, Origin: health.FromDefault}
	switch variable := f.Annotations[fromVariable]; {
	case variable != nil:
		s.Origin, s.Variable = health.FromEnvironment, variable[0]
	case f.Annotations[forMemory] != nil:
		s.Origin = health.FromMemory
	case f.Changed:
		s.Origin = health.FromFlag
	}
	return s
}

// settings are the flags of run, by name, after they were completed: what the
// daemon runs with and where each value came from.
func (o *runOptions) settings(flags *pflag.FlagSet) (settings []health.Setting) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		s := setting(f)
		switch f.Name {
		case "agent-url":
			if s.Origin == health.FromDefault && o.agentVariables != "" {
				s.Origin, s.Variable = health.FromEnvironment, o.agentVariables
			}
		case "drainers":
			s.Effective = strconv.Itoa(o.config.Aggregate.Drainers)
		}
		if s.Effective == s.Value {
			s.Effective = ""
		}
		settings = append(settings, s)
	})
	return settings
}
