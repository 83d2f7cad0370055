package main

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runOptions are the flags of run and config, and the configuration that they result in.
type runOptions struct {
	config    daemon.Config
	flags     *pflag.FlagSet    // of run alone
	variables map[string]string // environment variables that have set flags, by flag
	receivers receiverOptions
	exporters exporterOptions
	limits    limitOptions
	process   processOptions
}

// commonFlags are the flags that help shows without --all.
var commonFlags = []string{
	"socket", "socket-mode", "apm-socket", "apm-addr", "otlp-addr", "otlp-forward", "otlp-keep",
	"agent-url", "otlp-metrics-endpoint", "prometheus",
	"max-aggregates", "cardinality-limit", "mask-names", "max-connections", "http-addr", "log-level",
}

// groups declares the flags, with the defaults of the configuration.
func (o *runOptions) groups() []commandline.Group {
	o.config = daemon.DefaultConfig()
	return []commandline.Group{
		o.receivers.group(&o.config),
		o.exporters.group(&o.config),
		o.limits.names(&o.config),
		o.limits.group(&o.config),
		o.process.group(&o.config),
	}
}

func (o *runOptions) addTo(cmd *cobra.Command) {
	groups := o.groups()
	commandline.AddGroups(cmd, commonFlags, groups...)
	o.flags = commandline.NewGroup("").Flags
	for _, g := range groups {
		o.flags.AddFlagSet(g.Flags)
	}
}

// complete turns the flags into a configuration, and returns an error for each that can't be used. A flag
// that can't be parsed keeps its default, so that no second error follows from it.
func (o *runOptions) complete(s *settings) error {
	o.process.complete(&o.config)
	o.config.Version = version
	o.config.Admit.DefaultHost, o.config.Admit.DefaultEnv = os.Getenv("DD_HOSTNAME"), os.Getenv("DD_ENV")
	return errors.Join(
		o.receivers.complete(&o.config, s),
		o.exporters.complete(&o.config, s),
		o.limits.complete(&o.config, s),
	)
}

// fit adapts defaults to the available memory and file descriptors.
func (o *runOptions) fit(s *settings) {
	byMemory := daemon.FitMemory(&o.config, memory.Find(os.DirFS("/")), s.isSet)
	for _, name := range byMemory {
		s.of(name).Origin = status.FromMemory
	}
	for _, name := range daemon.FitDescriptors(&o.config, descriptorLimit(), s.isSet) {
		s.of(name).Origin = status.FromDescriptors
	}
	drainers := strconv.Itoa(o.config.Aggregate.Drainers)
	s.of("drainers").Effective = drainers
	if slices.Contains(byMemory, "drainers") {
		_ = o.flags.Lookup("drainers").Value.Set("fixed:" + drainers) // shown instead of the default policy
	}
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
	o.config.Log = newLogger(cmd.ErrOrStderr(), o.process.logLevel, o.process.logFormat)
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
func (s *settings) of(flag string) *status.Setting { return cmp.Or(s.byName[flag], &status.Setting{}) }

// isSet reports whether the operator has set a flag.
func (s *settings) isSet(flag string) bool {
	f := s.flags.Lookup(flag)
	return f != nil && f.Changed
}

// fromVariable records the environment variables that a value is from, unless there are none.
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

// parseInto parses a text into a value, which keeps its default on an error.
func parseInto[T any](value *T, text string, parse func(string) (T, error)) error {
	parsed, err := parse(text)
	if err == nil {
		*value = parsed
	}
	return err
}
