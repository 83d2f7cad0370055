package main

import (
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spf13/pflag"
)

// memoryFit is the flags whose defaults follow the memory there is. What was set by hand
// stays.
type memoryFit struct {
	options  *runOptions
	flags    *pflag.FlagSet
	sketches int // bytes of sketches for each aggregate
}

// Flags that are no plain numbers, or that others follow. The last is none: it is how many
// bytes of --sketch-bytes there are for each aggregate.
const (
	aggregatesFlag = "max-aggregates"
	drainersFlag   = "drainers"
	sketchesOfOne  = "sketches of an aggregate"
)

const (
	// labelsOfOne is the memory of one aggregate's labels: TestWhatAnAggregateTakes measures it.
	labelsOfOne  = 768
	fullSketches = 2 << 10
	leastBytes   = 1 << 20 // of labels, and of sketches
)

// follow gives the aggregates the memory for labels and sketches that so many need.
func (m *memoryFit) follow() {
	aggregates := m.value(aggregatesFlag)
	m.set("label-bytes", max(leastBytes, aggregates*labelsOfOne))
	m.set("sketch-bytes", max(leastBytes, aggregates*m.sketches))
}

func (m *memoryFit) fits() bool {
	return m.options.config.Memory().Total <= m.options.config.MemoryLimit.Bytes
}

func (m *memoryFit) isByHand(name string) bool {
	f := m.flags.Lookup(name)
	return f != nil && f.Changed
}

// value is what a flag comes to, 0 for no flag.
func (m *memoryFit) value(name string) int {
	switch name {
	case "":
		return 0
	case drainersFlag:
		return m.options.config.Aggregate.Drainers
	case sketchesOfOne:
		return m.sketches
	}
	return number(m.flags, name)
}

// set chooses a flag's value, where nobody set it by hand.
func (m *memoryFit) set(name string, value int) {
	if m.isByHand(name) || value == m.value(name) {
		return
	}
	text := strconv.Itoa(value)
	switch name {
	case sketchesOfOne:
		m.sketches = value
		return
	case drainersFlag:
		text, m.options.config.Aggregate.Drainers = "fixed:"+text, value
	}
	f := m.flags.Lookup(name)
	if err := f.Value.Set(text); err != nil {
		panic("BUG: a default can't be changed: " + err.Error())
	}
	annotate(f, forMemory, m.options.config.MemoryLimit.Source)
}

// number is the value of a flag that has a number.
func number(flags *pflag.FlagSet, name string) int {
	n, err := memory.ParseSize(flags.Lookup(name).Value.String())
	if err != nil {
		panic("BUG: a flag that memory depends on is no number: " + err.Error())
	}
	return n
}
