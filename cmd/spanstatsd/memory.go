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
// until everything fits. What was set by hand stays as it was set, and what must
// hold it stays large enough.
var smaller = []struct {
	flag  string
	value int
	small bool   // also wherever there is no more than smallMemory
	holds string // a flag whose value it must hold
}{
	{"max-connections", 256, true, ""},
	{"sketch-bytes", 4 << 20, true, ""},
	{"max-key-bytes", 2 << 20, true, ""},
	{"max-key-bytes-in-all", 8 << 20, true, "max-key-bytes"},
	{"label-bytes", 2 << 20, true, ""},
	{"max-buffer-bytes", 4 << 20, false, "max-frame"},
	{"apm-max-connections", 128, true, ""},
	{"apm-max-body", 4 << 20, false, ""}, // what is larger loses nothing, since the agent counts it
	{"apm-max-body-bytes", 8 << 20, false, "apm-max-body"},
	{"apm-counters", 1, true, ""},
	{"apm-max-body", 1 << 20, false, ""},
	{"apm-max-body-bytes", 4 << 20, false, "apm-max-body"},
	{"apm-max-connections", 64, false, ""}, // an idle one gives way to the next
	{"max-connections", 128, false, ""},
	{"retry-bytes", 8 << 20, false, ""},
	{"ring-slots", 8192, false, "max-batch"},
	{"ring-slots", 4096, true, "max-batch"},
	{"max-aggregates", 256, true, ""},
	{"max-connections", 64, false, ""},
	{"sketch-bytes", 1 << 20, false, ""},
	{"label-bytes", 1 << 20, false, ""},
	{"max-key-bytes-in-all", 4 << 20, false, "max-key-bytes"},
	{"max-buffer-bytes", 2 << 20, false, "max-frame"},
	{"max-origins", 64, false, ""},
	{"apm-max-body", 128 << 10, false, ""},
	{"apm-max-body-bytes", 1 << 20, false, "apm-max-body"},
	{"apm-max-connections", 32, false, ""},
	{"max-connections", 32, false, ""},
	{"max-origins", 32, false, ""},
	{"apm-max-body", 64 << 10, false, ""},
	{"apm-max-connections", 24, false, ""},
	{"max-connections", 24, false, ""},
	{"max-key-bytes", 512 << 10, false, ""},
	{"max-key-bytes-in-all", 1 << 20, false, "max-key-bytes"},
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
		value, before := s.value, number(flags, s.flag)
		for value <= number(flags, s.holds) && value < before {
			value *= 2
		}
		if value >= before {
			continue
		}
		if err := f.Value.Set(strconv.Itoa(value)); err != nil {
			panic("BUG: a default can't be made smaller: " + err.Error())
		}
		annotate(f, forMemory, limit.Source)
	}
}

// number is a flag's value, 0 for no flag.
func number(flags *pflag.FlagSet, name string) int {
	if name == "" {
		return 0
	}
	n, err := memory.ParseSize(flags.Lookup(name).Value.String())
	if err != nil {
		panic("BUG: a flag that memory depends on is no number: " + err.Error())
	}
	return n
}
