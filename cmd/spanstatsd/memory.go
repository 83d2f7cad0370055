package main

import (
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spf13/pflag"
)

// smallMemory is the limit up to which what only many tracers need is made smaller even
// where more would fit.
const smallMemory = 128 << 20

// Of a limit, one aggregate has at most aggregateMemory. For half as many as that makes,
// and for baseAggregates in any case, other limits give way.
const (
	aggregateMemory = 16 << 10
	baseAggregates  = 3072
	mostAggregates  = 32768
	moreAggregates  = 256
)

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
	{"max-key-bytes", 2 << 20, true, ""},
	{"max-key-bytes-in-all", 8 << 20, true, "max-key-bytes"},
	{drainersFlag, 4, true, ""}, // each has tables for all aggregates
	{drainersFlag, 2, true, ""},
	{drainersFlag, 1, true, ""}, // which counts millions of spans a second
	{"max-buffer-bytes", 4 << 20, false, "max-frame"},
	{"apm-max-connections", 128, true, ""},
	{"apm-max-body", 4 << 20, false, ""}, // what is larger loses nothing, since the agent counts it
	{"apm-max-body-bytes", 8 << 20, false, "apm-max-body"},
	{"apm-counters", 1, true, ""},
	{"otlp-max-connections", 32, true, ""},
	{"otlp-max-body", 4 << 20, false, ""}, // what most servers of gRPC take
	{"otlp-max-body-bytes", 16 << 20, false, "otlp-max-body"},
	{"otlp-counters", 1, true, ""},
	{"otlp-max-body", 1 << 20, false, ""},
	{"otlp-max-body-bytes", 4 << 20, false, "otlp-max-body"},
	{sketchesOfOne, 1 << 10, false, ""},
	{"apm-max-body", 1 << 20, false, ""},
	{"apm-max-body-bytes", 4 << 20, false, "apm-max-body"},
	{"apm-max-connections", 64, false, ""}, // an idle one gives way to the next
	{"max-connections", 128, false, ""},
	{"retry-bytes", 8 << 20, false, ""},
	{"ring-slots", 8192, false, "max-batch"},
	{"ring-slots", 4096, true, "max-batch"},
	{"max-connections", 64, false, ""},
	{"max-key-bytes-in-all", 4 << 20, false, "max-key-bytes"},
	{"max-buffer-bytes", 2 << 20, false, "max-frame"},
	{"max-origins", 64, false, ""},
	{sketchesOfOne, 640, false, ""},
	{"apm-max-body", 128 << 10, false, ""},
	{"apm-max-body-bytes", 1 << 20, false, "apm-max-body"},
	{"apm-max-connections", 32, false, ""},
	{"otlp-max-body", 512 << 10, false, ""},
	{"otlp-max-body-bytes", 2 << 20, false, "otlp-max-body"},
	{"otlp-max-streams", 4, false, ""},
	{"otlp-max-connections", 24, false, ""}, // an idle one gives way to the next
	{"max-connections", 32, false, ""},
	{"retry-bytes", 4 << 20, false, ""},
	{"max-key-bytes", 1 << 20, false, ""},
	{"max-key-bytes-in-all", 2 << 20, false, "max-key-bytes"},
	{"apm-max-connections", 24, false, ""},
	{"max-connections", 24, false, ""},
	{"apm-max-body", 96 << 10, false, ""},
	{"otlp-max-streams", 2, false, ""},
	{"otlp-max-connections", 16, false, ""},
	{"otlp-max-body", 256 << 10, false, ""},
	{"otlp-max-body-bytes", 1 << 20, false, "otlp-max-body"},
	{aggregatesFlag, 2048, false, ""},
	{"apm-max-body", 64 << 10, false, ""},
	{"otlp-max-connections", 8, false, ""},
	{"max-origins", 32, false, ""},
	{"max-key-bytes", 512 << 10, false, ""},
	{"max-key-bytes-in-all", 1 << 20, false, "max-key-bytes"},
	{"retry-bytes", 2 << 20, false, ""},
	{aggregatesFlag, 1024, false, ""},
	{"otlp-max-body", 128 << 10, false, ""}, // what is larger is lost
	{aggregatesFlag, 256, false, ""},
}

// fit chooses defaults for the memory there is: a number of aggregates, then what gives
// way until everything fits, then as many aggregates more as there is room for. Whether
// everything fits in the end, Check says.
func (m *memoryFit) fit() {
	limit := m.options.config.MemoryLimit
	most := int(min(limit.Bytes/aggregateMemory, mostAggregates))
	m.set(aggregatesFlag, max(baseAggregates, most/2))
	m.follow()
	for _, s := range smaller {
		if m.isByHand(s.flag) || m.fits() && !(s.small && limit.Bytes <= smallMemory) {
			continue
		}
		value, before := s.value, m.value(s.flag)
		for value <= m.value(s.holds) && value < before {
			value *= 2
		}
		if value < before {
			m.set(s.flag, value)
			m.follow()
		}
	}
	if m.isByHand(aggregatesFlag) {
		return
	}
	least := m.value(aggregatesFlag)
	for n := max(least, most/moreAggregates*moreAggregates); ; n -= moreAggregates {
		m.set(aggregatesFlag, max(least, n))
		m.follow()
		if n <= least || m.fits() {
			return
		}
	}
}

// fitMemory makes the defaults fit the memory there is, where there is a limit.
func (o *runOptions) fitMemory(flags *pflag.FlagSet, limit memory.Limit) {
	o.config.MemoryLimit = limit
	if limit.Known() {
		m := memoryFit{options: o, flags: flags, sketches: fullSketches}
		m.fit()
	}
}
