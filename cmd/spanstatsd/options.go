package main

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runOptions are the flags of run as they were given, and the configuration that they come to.
type runOptions struct {
	config     daemon.Config
	spans      spanOptions
	statistics statisticsOptions
	names      nameOptions
	limits     limitOptions
	process    processOptions
}

// groups are the flags of run, as help, the manual page and docs/tuning.md show them.
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

// complete turns the flags into a configuration, or says of each that can't be used why. A
// flag that can't be read keeps its default, so that no second mistake follows from it.
func (o *runOptions) complete(flags *pflag.FlagSet) error {
	o.process.complete(&o.config)
	o.config.Admit.DefaultHost, o.config.Admit.DefaultEnv = os.Getenv("DD_HOSTNAME"), os.Getenv("DD_ENV")
	return errors.Join(
		o.spans.complete(&o.config, flags),
		o.statistics.complete(&o.config, flags),
		o.names.complete(&o.config, flags),
		o.limits.complete(&o.config),
	)
}

// fit makes defaults smaller, or larger, for the memory and the descriptors that there are. A
// flag that was set by hand stays.
func (o *runOptions) fit(flags *pflag.FlagSet) {
	byHand := func(name string) bool {
		f := flags.Lookup(name)
		return f != nil && f.Changed
	}
	noteFit := func(changed []string, from, source string) {
		for _, name := range changed {
			f := flags.Lookup(name)
			if f == nil {
				continue // a limit without a flag
			}
			if name == drainersFlag {
				_ = f.Value.Set("fixed:" + strconv.Itoa(o.config.Aggregate.Drainers)) // it is a policy
			}
			commandline.Annotate(f, from, source)
		}
	}
	limit := memory.Find(os.DirFS("/"))
	noteFit(daemon.FitMemory(&o.config, limit, byHand), forMemory, limit.Source)
	noteFit(daemon.FitDescriptors(&o.config, descriptorLimit(), byHand), forDescriptors, "descriptors")
}

// descriptorLimit is how many files the process may open, 0 if the kernel does not say.
// The Go runtime has raised it as far as it may.
func descriptorLimit() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur
}

// read makes the configuration of the flags and of their variables. It returns all that
// is wrong, and has read the rest.
func (o *runOptions) read(cmd *cobra.Command, flags *pflag.FlagSet) error {
	mistakes := errors.Join(commandline.ApplyEnvironment(cmd), o.complete(flags))
	o.fit(flags)
	commandline.Annotate(flags.Lookup(drainersFlag), effective, strconv.Itoa(o.config.Aggregate.Drainers))
	o.config.Settings = settings(flags)
	o.config.Log = o.process.logger(cmd.ErrOrStderr())
	return commandline.AsUsage(mistakes)
}

// check returns all that is wrong with what was read.
func (o *runOptions) check(cmd *cobra.Command, flags *pflag.FlagSet) error {
	return commandline.AsUsage(o.read(cmd, flags), o.config.Check())
}
