package main

import (
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spf13/pflag"
)

// smallMemory is the limit up to which the rings and the tables are made smaller
// even where the larger ones would fit.
const smallMemory = 128 << 20

// smaller are the defaults that give way where memory is short, in this order,
// until everything fits. What was set by hand stays as it was set.
var smaller = []struct {
	flag  string
	value int
	small bool // also wherever there is no more than smallMemory
}{
	{"max-connections", 256, true},
	{"sketch-bytes", 4 << 20, true},
	{"max-key-bytes", 2 << 20, true},
	{"max-key-bytes-in-all", 8 << 20, true},
	{"label-bytes", 2 << 20, true},
	{"max-buffer-bytes", 4 << 20, false},
	{"apm-max-body", 4 << 20, false}, // what is larger loses nothing, since the agent counts it
	{"apm-max-body-bytes", 8 << 20, false},
	{"retry-bytes", 8 << 20, false},
	{"ring-slots", 4096, true},
	{"max-aggregates", 256, true},
	{"max-connections", 64, false},
	{"sketch-bytes", 1 << 20, false},
	{"label-bytes", 1 << 20, false},
	{"max-key-bytes-in-all", 4 << 20, false},
	{"max-buffer-bytes", 2 << 20, false},
}

// fitMemory makes defaults smaller until the configuration fits the limit. Whether
// it does in the end, Check says.
func (o *runOptions) fitMemory(flags *pflag.FlagSet, limit memory.Limit) {
	o.config.MemoryLimit = limit
	for _, s := range smaller {
		f := flags.Lookup(s.flag)
		fits := o.config.Memory().Total <= limit.Bytes
		if f.Changed || fits && !(s.small && limit.Bytes <= smallMemory) {
			continue
		}
		if err := f.Value.Set(strconv.Itoa(s.value)); err != nil {
			panic("BUG: a default can't be made smaller: " + err.Error())
		}
		annotate(f, forMemory, limit.Source)
	}
}
