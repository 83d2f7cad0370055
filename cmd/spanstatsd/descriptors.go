package main

import (
	"strconv"
	"syscall"

	"github.com/spf13/pflag"
)

// leastConnections is where making limits smaller ends; Check then says what to do.
const leastConnections = 16

// fitDescriptors halves the defaults of connections, the larger first, until the process
// may open as many files as all of them together need. What was set by hand stays.
func (o *runOptions) fitDescriptors(flags *pflag.FlagSet, limit uint64) {
	o.config.DescriptorLimit = limit
	names := []string{"max-connections"}
	if o.config.APM.Enabled() {
		names = append(names, "apm-max-connections")
	}
	if o.config.OTLP.Enabled() {
		names = append(names, "otlp-max-connections")
	}
	for o.config.DescriptorLimit > 0 && uint64(o.config.Descriptors()) > limit {
		var largest *pflag.Flag
		for _, name := range names {
			if f := flags.Lookup(name); !f.Changed && number(flags, name) > leastConnections && (largest == nil || number(flags, name) > number(flags, largest.Name)) {
				largest = f
			}
		}
		if largest == nil {
			return
		}
		if err := largest.Value.Set(strconv.Itoa(max(leastConnections, number(flags, largest.Name)/2))); err != nil {
			panic("BUG: a default can't be made smaller: " + err.Error())
		}
		annotate(largest, forDescriptors, "")
	}
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
