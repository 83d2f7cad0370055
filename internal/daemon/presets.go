package daemon

import (
	"slices"
	"sort"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Limits without a flag.
const (
	frameBuffers  = "buffers of large frames"
	apmCounters   = "counters of apm"
	otlpCounters  = "counters of otlp"
	otlpStreams   = "streams of OTLP"
	nativeBuckets = "native buckets of a series"

	zipkinCounters = "counters of zipkin"
)

const maxAggregates = "max-aggregates" // label and sketch memory depend on it

// limits returns the limits that depend on memory and file descriptors, by the names of their flags.
func (c *Config) limits() map[string]*int {
	return map[string]*int{
		maxAggregates: &c.Aggregate.MaxAggregates, "label-bytes": &c.Aggregate.LabelBytes,
		"sketch-bytes": &c.Aggregate.SketchBytes, "max-origins": &c.Aggregate.MaxOrigins,
		"drainers": &c.Aggregate.Drainers, "ring-slots": &c.Aggregate.RingSlots,
		"max-key-bytes": &c.Admit.MaxKeyBytes, "max-key-bytes-total": &c.Admit.MaxKeyBytesInAll,
		"retry-bytes": &c.Flush.RetryBytes, "max-connections": &c.Ingest.MaxConnections,
		frameBuffers: &c.Ingest.MaxBufferBytes, nativeBuckets: &c.NativeBuckets,

		"apm-max-connections": &c.APM.MaxConnections, "apm-max-body": &c.APM.MaxBody,
		"apm-max-body-bytes": &c.APM.MaxBodyBytes, apmCounters: &c.APM.Counters,

		"otlp-max-connections": &c.OTLP.MaxConnections, "otlp-max-body": &c.OTLP.MaxBody,
		"otlp-max-body-bytes": &c.OTLP.MaxBodyBytes, otlpCounters: &c.OTLP.Counters,
		otlpStreams: &c.OTLP.MaxStreams,

		"zipkin-max-connections": &c.Zipkin.MaxConnections, "zipkin-max-body": &c.Zipkin.MaxBody,
		"zipkin-max-body-bytes": &c.Zipkin.MaxBodyBytes, zipkinCounters: &c.Zipkin.Counters,
	}
}

// presets are sets of defaults, the largest first. Large contains the defaults of the command line.
var presets = []struct {
	name        string
	aggregates  int // at least
	sketchBytes int // per aggregate
}{
	{"large", 3072, 2 << 10},
	{"medium", 3072, 1 << 10},
	{"small", 3072, 1 << 10},
	{"tiny", 2048, 640},
	{"minimal", 256, 640},
}

// presetLimits are the maximum values for each preset below large. Smaller defaults are kept.
var presetLimits = []struct {
	limit  string
	values [4]int // medium, small, tiny, minimal
}{
	{"max-connections", [4]int{256, 64, 24, 24}},
	{"drainers", [4]int{1, 1, 1, 1}}, // each has tables for all aggregates
	{"ring-slots", [4]int{65536, 4096, 4096, 4096}},
	{"max-origins", [4]int{256, 64, 64, 32}},
	{"max-key-bytes", [4]int{2 << 20, 2 << 20, 1 << 20, 512 << 10}},
	{"max-key-bytes-total", [4]int{8 << 20, 4 << 20, 2 << 20, 1 << 20}},
	{"retry-bytes", [4]int{16 << 20, 8 << 20, 4 << 20, 2 << 20}},
	{frameBuffers, [4]int{4 << 20, 2 << 20, 3 << 19, 3 << 19}},
	{nativeBuckets, [4]int{80, 40, 20, 20}},

	{"apm-max-connections", [4]int{64, 64, 24, 24}},
	{"apm-max-body", [4]int{1 << 20, 1 << 20, 128 << 10, 64 << 10}}, // the agent counts longer requests
	{"apm-max-body-bytes", [4]int{4 << 20, 4 << 20, 1 << 20, 1 << 20}},
	{apmCounters, [4]int{1, 1, 1, 1}},

	{"otlp-max-connections", [4]int{32, 32, 16, 8}},
	{"otlp-max-body", [4]int{4 << 20, 1 << 20, 512 << 10, 128 << 10}}, // longer requests are lost
	{"otlp-max-body-bytes", [4]int{16 << 20, 4 << 20, 2 << 20, 1 << 20}},
	{otlpCounters, [4]int{1, 1, 1, 1}},
	{otlpStreams, [4]int{8, 8, 2, 2}},

	{"zipkin-max-connections", [4]int{32, 32, 16, 8}},
	{"zipkin-max-body", [4]int{4 << 20, 1 << 20, 512 << 10, 128 << 10}},
	{"zipkin-max-body-bytes", [4]int{16 << 20, 4 << 20, 2 << 20, 1 << 20}},
	{zipkinCounters, [4]int{1, 1, 1, 1}},
}

// A user notices missing names first. So a preset fits only with half of the aggregates that the memory limit
// permits at aggregateMemory each; the remaining memory is for more.
const (
	aggregateMemory = 16 << 10
	mostAggregates  = 32768
	aggregateStep   = 256
)

const (
	labelsPerAggregate = 768     // bytes
	leastBytes         = 1 << 20 // of labels, and of sketches
)

// FitMemory applies the largest preset that fits in a memory limit, and uses the remaining memory
// for aggregates. Limits set by the operator are kept. It returns the names of the limits that it
// has changed. The smallest preset is applied even if it does not fit; then Check returns an error
// that names the flags to lower.
func FitMemory(c *Config, limit memory.Limit, isSet func(limit string) bool) (changed []string) {
	c.MemoryLimit, c.Preset = limit, presets[0].name
	if !limit.Known() {
		return nil
	}
	defaults := *c
	maxAggregates := int(min(limit.Bytes/aggregateMemory, mostAggregates))
	for i, p := range presets {
		*c = defaults
		minAggregates, isLast := max(p.aggregates, maxAggregates/2), i == len(presets)-1
		if isLast {
			minAggregates = p.aggregates
		}
		c.applyPreset(i, minAggregates, isSet)
		if c.fits() || isLast {
			c.addAggregates(i, maxAggregates, isSet)
			break
		}
	}
	defaultLimits := defaults.limits()
	for name, value := range c.limits() {
		if *value != *defaultLimits[name] {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

func (c *Config) fits() bool { return memory.Total(c.parts()) <= c.MemoryLimit.Bytes }

// applyPreset lowers all limits to those of a preset, except for limits set by the operator.
func (c *Config) applyPreset(preset, aggregates int, isSet func(limit string) bool) {
	c.Preset = presets[preset].name
	limits := c.limits()
	for _, l := range presetLimits {
		if preset == 0 || isSet(l.limit) {
			continue
		}
		presetLimit := max(l.values[preset-1], c.minimumOf(l.limit))
		*limits[l.limit] = min(*limits[l.limit], presetLimit)
	}
	c.setAggregates(preset, aggregates, isSet)
}

// minimumOf returns the minimum of a limit that must be at least as large as another one.
func (c *Config) minimumOf(limit string) int {
	if limit == "max-key-bytes-total" {
		return c.Admit.MaxKeyBytes
	}
	for _, k := range receiverKinds {
		if limit == k.name+"-max-body-bytes" {
			return k.config(c).LeastBodyBytes()
		}
	}
	return 0
}

// setAggregates sets the number of aggregates, and the memory of labels and sketches in proportion.
func (c *Config) setAggregates(preset, aggregates int, isSet func(limit string) bool) {
	if !isSet(maxAggregates) {
		c.Aggregate.MaxAggregates = aggregates
	}
	if !isSet("label-bytes") {
		c.Aggregate.LabelBytes = max(leastBytes, c.Aggregate.MaxAggregates*labelsPerAggregate)
	}
	if !isSet("sketch-bytes") {
		c.Aggregate.SketchBytes = max(leastBytes, c.Aggregate.MaxAggregates*presets[preset].sketchBytes)
	}
}

// addAggregates increases the number of aggregates in steps, as far as memory and maximum permit.
func (c *Config) addAggregates(preset, maximum int, isSet func(limit string) bool) {
	initial := c.Aggregate.MaxAggregates
	steps := sort.Search(max(0, maximum-initial)/aggregateStep, func(n int) bool {
		c.setAggregates(preset, initial+(n+1)*aggregateStep, isSet)
		return !c.fits()
	})
	c.setAggregates(preset, initial+steps*aggregateStep, isSet)
}
