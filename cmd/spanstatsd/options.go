package main

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"syscall"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runOptions are the flags of run as they were given, and the configuration that they come to.
type runOptions struct {
	config     daemon.Config
	flags      *pflag.FlagSet
	variables  map[string]string // environment variables that have set flags, by flag
	spans      spanOptions
	statistics statisticsOptions
	names      nameOptions
	limits     limitOptions
	process    processOptions
}

// addTo adds the flags of run to a command, as help, the manual page and docs/configuration.md show them.
func (o *runOptions) addTo(cmd *cobra.Command) {
	groups := o.groups()
	commandline.AddGroups(cmd, groups)
	o.flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	o.flags.SortFlags = false
	for _, g := range groups {
		o.flags.AddFlagSet(g.All())
	}
}

func (o *runOptions) groups() []*commandline.Group {
	o.config = daemon.DefaultConfig()
	return []*commandline.Group{
		o.spans.group(&o.config),
		o.statistics.group(&o.config),
		o.names.group(&o.config),
		o.limits.group(&o.config),
		o.process.group(&o.config),
	}
}

// complete turns the flags into a configuration, and returns an error for each that can't be used. A flag
// that can't be parsed keeps its default, so that no second error follows from it.
func (o *runOptions) complete(s *settings) error {
	o.process.complete(&o.config)
	o.config.Admit.DefaultHost, o.config.Admit.DefaultEnv = os.Getenv("DD_HOSTNAME"), os.Getenv("DD_ENV")
	return errors.Join(
		o.spans.complete(&o.config, s),
		o.statistics.complete(&o.config, s),
		o.names.complete(&o.config, s),
		o.limits.complete(&o.config),
	)
}

// fit adapts defaults to the memory and the file descriptors that there are.
func (o *runOptions) fit(s *settings) {
	for _, name := range daemon.FitMemory(&o.config, memory.Find(os.DirFS("/")), s.isSet) {
		s.of(name).Origin = status.FromMemory
	}
	for _, name := range daemon.FitDescriptors(&o.config, descriptorLimit(), s.isSet) {
		s.of(name).Origin = status.FromDescriptors
	}
	s.of("drainers").Effective = strconv.Itoa(o.config.Aggregate.Drainers)
}

// descriptorLimit returns how many files the process may open, 0 if that is unknown. The Go runtime has
// raised it as far as it may.
func descriptorLimit() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur
}

// read makes the configuration from the flags and their variables. It returns everything that is wrong, and
// has read the rest.
func (o *runOptions) read(cmd *cobra.Command) error {
	s := newSettings(o.flags, o.variables)
	mistakes := o.complete(s)
	o.fit(s)
	o.config.Settings = s.list()
	o.config.Log = o.process.logger(cmd.ErrOrStderr())
	return commandline.AsUsage(mistakes)
}

// check reads the configuration, and returns everything that is wrong with it.
func (o *runOptions) check(cmd *cobra.Command) error {
	return commandline.AsUsage(o.read(cmd), o.config.Check())
}

// settings are the values that the daemon runs with, and where each comes from.
type settings struct {
	flags  *pflag.FlagSet
	byName map[string]*status.Setting
}

func newSettings(flags *pflag.FlagSet, variables map[string]string) *settings {
	s := &settings{flags, map[string]*status.Setting{}}
	flags.VisitAll(func(f *pflag.Flag) {
		s.byName[f.Name] = &status.Setting{Name: f.Name, Default: f.DefValue, Origin: status.FromDefault}
		if f.Changed {
			s.byName[f.Name].Origin = status.FromFlag
		}
		s.fromVariable(f.Name, variables[f.Name])
	})
	return s
}

// of returns the setting of a flag. Limits without a flag have one that is not listed.
func (s *settings) of(flag string) *status.Setting {
	return cmp.Or(s.byName[flag], &status.Setting{})
}

// isSet reports whether the operator has set a flag.
func (s *settings) isSet(flag string) bool {
	f := s.flags.Lookup(flag)
	return f != nil && f.Changed
}

// fromVariable notes the environment variables that chose a value, unless there are none.
func (s *settings) fromVariable(flag, variables string) {
	if variables != "" {
		s.of(flag).Origin, s.of(flag).Variable = status.FromEnvironment, variables
	}
}

// list returns the settings in the order of the flags.
func (s *settings) list() (list []status.Setting) {
	s.flags.VisitAll(func(f *pflag.Flag) {
		setting := *s.byName[f.Name]
		setting.Value = f.Value.String()
		if setting.Effective == setting.Value {
			setting.Effective = ""
		}
		list = append(list, setting)
	})
	return list
}

// readInto parses a text, and leaves the value as it is on an error.
func readInto[T any](into *T, given string, read func(string) (T, error)) error {
	value, err := read(given)
	if err == nil {
		*into = value
	}
	return err
}
