package main

import (
	"cmp"
	"errors"
	"maps"
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

// runOptions holds the flags of run and config, and the configuration that results from them.
type runOptions struct {
	config    daemon.Config
	flags     *pflag.FlagSet    // the grouped flags, without --all and --help
	variables map[string]string // name of the environment variable of each flag that was set by one
	oldNames  map[string]string // present name of each flag that was set by its old name
	receivers receiverOptions
	exporters exporterOptions
	limits    limitOptions
	process   processOptions
}

// commonFlags contains the flags that help shows without --all.
var commonFlags = []string{
	"socket", "socket-mode", "apm-socket", "apm-addr", "otlp-addr", "otlp-forward", "otlp-keep",
	"agent-url", "otlp-metrics-endpoint", "prometheus",
	"max-aggregates", "cardinality-limit", "mask-names", "max-connections", "http-addr", "log-level",
}

// renamedFlags maps the flags that were renamed in 0.2.0 to their present names. 0.3.0 removes the
// old ones.
var renamedFlags = map[string]string{
	"otlp-reading":         "otlp-semantics",
	"max-key-bytes-in-all": "max-key-bytes-total",
}

// groups declares all flags, with the defaults of the configuration.
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

// addTo adds the flags to a command.
func (o *runOptions) addTo(cmd *cobra.Command) {
	groups := o.groups()
	commandline.AddGroups(cmd, commonFlags, groups...)
	o.oldNames = commandline.AcceptOldNames(cmd.Flags(), renamedFlags)
	o.flags = commandline.NewGroup("").Flags
	for _, g := range groups {
		o.flags.AddFlagSet(g.Flags)
	}
}

// complete converts the values of flags to the configuration. It returns the joined errors of all
// invalid flags. The configuration contains the default of an invalid flag.
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

// fitLimits lowers the defaults of limits to the available memory and file descriptors. It records in s
// which limits were changed.
func (o *runOptions) fitLimits(s *settings) {
	changedForMemory := daemon.FitMemory(&o.config, memory.Find(os.DirFS("/")), s.isSet)
	for _, flag := range changedForMemory {
		s.setting(flag).Origin = status.FromMemory
	}
	for _, flag := range daemon.FitDescriptors(&o.config, descriptorLimit(), s.isSet) {
		s.setting(flag).Origin = status.FromDescriptors
	}
	drainers := strconv.Itoa(o.config.Aggregate.Drainers)
	s.setting("drainers").Effective = drainers
	if slices.Contains(changedForMemory, "drainers") {
		_ = o.flags.Lookup("drainers").Value.Set("fixed:" + drainers) // shown instead of the default policy
	}
}

// descriptorLimit returns the maximum number of open files of the process, or 0 if it is unknown.
func descriptorLimit() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur // the soft limit, which the Go runtime raises to the hard limit at startup
}

// read creates the configuration and the logger from flags and environment variables. It returns the
// joined errors of all invalid values. The configuration contains all valid ones.
func (o *runOptions) read(cmd *cobra.Command) error {
	s := newSettings(o.flags, o.variables)
	flagErrs := o.complete(s)
	o.fitLimits(s)
	o.config.Settings = s.list()
	o.config.Log = newLogger(cmd.ErrOrStderr(), o.process.logLevel, o.process.logFormat)
	if ignored := o.exporters.ignored; ignored != "" {
		o.config.Log.Warn(ignored + "; the daemon exports OTLP metrics only over http/protobuf: to export them, set " +
			"--otlp-metrics-endpoint")
	}
	for _, old := range slices.Sorted(maps.Keys(o.oldNames)) {
		o.config.Log.Warn("a flag was set by its old name, which the next release does not accept; use the new name",
			"old", "--"+old, "new", "--"+o.oldNames[old])
	}
	return commandline.AsUsage(flagErrs)
}

// check reads and checks the configuration. It returns the joined errors of all invalid flags and
// settings.
func (o *runOptions) check(cmd *cobra.Command) error {
	return commandline.AsUsage(o.read(cmd), o.config.Check())
}

// settings holds the values that the daemon runs with, and the source of each.
type settings struct {
	flags  *pflag.FlagSet
	byName map[string]*status.Setting
}

// newSettings returns the settings of parsed flags. variables maps a flag that was set by an environment
// variable to the name of the variable.
func newSettings(flags *pflag.FlagSet, variables map[string]string) *settings {
	s := &settings{flags: flags, byName: map[string]*status.Setting{}}
	flags.VisitAll(func(f *pflag.Flag) {
		setting := &status.Setting{Name: f.Name, Default: f.DefValue, Origin: status.FromDefault}
		if f.Changed {
			setting.Origin = status.FromFlag
		}
		s.byName[f.Name] = setting
		s.recordVariables(f.Name, variables[f.Name])
	})
	return s
}

// setting returns the setting of a flag. If there is no such flag, it returns a new setting, which list
// does not return.
func (s *settings) setting(flag string) *status.Setting {
	return cmp.Or(s.byName[flag], &status.Setting{})
}

// isSet reports whether the operator has set a flag.
func (s *settings) isSet(flag string) bool {
	f := s.flags.Lookup(flag)
	return f != nil && f.Changed
}

// recordVariables records that a flag was set by environment variables. variables contains their names,
// separated by commas; if it is empty, recordVariables does nothing.
func (s *settings) recordVariables(flag, variables string) {
	if variables == "" {
		return
	}
	setting := s.setting(flag)
	setting.Origin = status.FromEnvironment
	setting.Variable = variables
}

// list returns all settings with their current values, in the order of the flags.
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

// parseInto parses text and stores the result in value. It does not change value if it returns an error.
func parseInto[T any](value *T, text string, parse func(string) (T, error)) error {
	parsed, err := parse(text)
	if err == nil {
		*value = parsed
	}
	return err
}
