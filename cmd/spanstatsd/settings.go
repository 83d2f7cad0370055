package main

import (
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spf13/pflag"
)

// The annotations of a flag whose value is not what its text says: the variable that chose it,
// what it comes to, and what its default was chosen anew for.
const (
	effective      = "spanstatsd_effective"
	forMemory      = "spanstatsd_for_memory"
	forDescriptors = "spanstatsd_for_descriptors"
)

// settings are the flags of run after they were completed: what the daemon runs with and
// where each value came from.
func settings(flags *pflag.FlagSet) (settings []health.Setting) {
	flags.VisitAll(func(f *pflag.Flag) {
		if commandline.Note(f, commandline.InGroup) != "" {
			settings = append(settings, setting(f))
		}
	})
	return settings
}

// setting is a flag's value and who chose it.
func setting(f *pflag.Flag) health.Setting {
	s := health.Setting{
		Name: f.Name, Value: f.Value.String(), Default: f.DefValue, Effective: commandline.Note(f, effective),
		Origin: health.FromDefault, Variable: commandline.Note(f, commandline.FromVariable),
	}
	switch {
	case s.Variable != "":
		s.Origin = health.FromEnvironment
	case commandline.Note(f, forDescriptors) != "":
		s.Origin = health.FromDescriptors
	case commandline.Note(f, forMemory) != "":
		s.Origin = health.FromMemory
	case f.Changed:
		s.Origin = health.FromFlag
	}
	if s.Effective == s.Value {
		s.Effective = ""
	}
	return s
}

// readInto reads a text, and leaves what is there where it can't.
func readInto[T any](into *T, given string, read func(string) (T, error)) error {
	value, err := read(given)
	if err == nil {
		*into = value
	}
	return err
}
