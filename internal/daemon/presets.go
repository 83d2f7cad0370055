package daemon

import (
	"slices"

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

const maxAggregatesFlag = "max-aggregates" // label and sketch memory depend on it

// limits returns pointers to the limits in c that depend on memory or file descriptors. Each key is
// the name of a flag or, for a limit without a flag, a description.
func (c *Config) limits() map[string]*int {
	return map[string]*int{
		maxAggregatesFlag:     &c.Aggregate.MaxAggregates,
		"label-bytes":         &c.Aggregate.LabelBytes,
		"sketch-bytes":        &c.Aggregate.SketchBytes,
		"max-origins":         &c.Aggregate.MaxOrigins,
		"drainers":            &c.Aggregate.Drainers,
		"ring-slots":          &c.Aggregate.RingSlots,
		"max-key-bytes":       &c.Admit.MaxKeyBytes,
		"max-key-bytes-total": &c.Admit.MaxKeyBytesInAll,
		"retry-bytes":         &c.Flush.RetryBytes,
		"max-connections":     &c.Ingest.MaxConnections,
		frameBuffers:          &c.Ingest.MaxBufferBytes,
		nativeBuckets:         &c.NativeBuckets,

		"apm-max-connections": &c.APM.MaxConnections,
		"apm-max-body":        &c.APM.MaxBody,
		"apm-max-body-bytes":  &c.APM.MaxBodyBytes,
		apmCounters:           &c.APM.Counters,

		"otlp-max-connections": &c.OTLP.MaxConnections,
		"otlp-max-body":        &c.OTLP.MaxBody,
		"otlp-max-body-bytes":  &c.OTLP.MaxBodyBytes,
		otlpCounters:           &c.OTLP.Counters,
		otlpStreams:            &c.OTLP.MaxStreams,

		"zipkin-max-connections": &c.Zipkin.MaxConnections,
		"zipkin-max-body":        &c.Zipkin.MaxBody,
		"zipkin-max-body-bytes":  &c.Zipkin.MaxBodyBytes,
		zipkinCounters:           &c.Zipkin.Counters,
	}
}

// presets are sets of defaults, the largest first. Large contains the defaults of the command line.
var presets = []struct {
	name                    string
	minAggregates           int
	sketchBytesPerAggregate int
}{
	{"large", 3072, 2 << 10},
	{"medium", 3072, 1 << 10},
	{"small", 3072, 1 << 10},
	{"tiny", 2048, 640},
	{"minimal", 256, 640},
}

// presetLimits are the maximum values for each preset below large. Smaller defaults are kept.
var presetLimits = []struct {
	flag   string // or the description of a limit without a flag, as in limits
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

const (
	// bytesPerAggregate is the memory limit per aggregate, from which the maximum number of aggregates is
	// computed.
	bytesPerAggregate = 16 << 10
	maxFitted         = 32768 // maximum number of aggregates that FitMemory sets
	aggregateStep     = 256

	labelBytesPerAggregate = 768
	minTableBytes          = 1 << 20 // minimum memory of labels, and of sketches
)

// FitMemory lowers or raises default limits so that the maximum memory of the daemon is within limit,
// or as low as possible. It does not change limits that the operator has set. It returns the sorted flags of
// the changed limits.
func FitMemory(c *Config, limit memory.Limit, isSetByOperator func(flag string) bool) (changed []string) {
	c.MemoryLimit = limit
	c.Preset = presets[0].name // contains the defaults; fitPreset can choose another one
	if !limit.Known() {
		return nil
	}
	defaults := *c
	c.fitPreset(isSetByOperator)
	limitsBefore, limitsAfter := defaults.limits(), c.limits()
	for flag := range limitsAfter {
		if *limitsAfter[flag] != *limitsBefore[flag] {
			changed = append(changed, flag)
		}
	}
	slices.Sort(changed)
	return changed
}

// fitPreset applies the largest preset, a set of limits, that fits in the memory limit, or the
// smallest one if none fits. It then uses the remaining memory for more aggregates, the label sets
// that are counted.
func (c *Config) fitPreset(isSetByOperator func(flag string) bool) {
	affordable := int(min(c.MemoryLimit.Bytes/bytesPerAggregate, maxFitted))
	// Users notice missing label sets first, so a smaller preset is better than few aggregates.
	index := c.applyFittingPreset(affordable/2, isSetByOperator)
	c.addAggregates(affordable, presets[index].sketchBytesPerAggregate, isSetByOperator)
}

// applyFittingPreset applies the largest preset with which the given number of aggregates fits in the
// memory limit, and returns its index. If none fits, it applies the smallest preset with its minimum
// number of aggregates.
func (c *Config) applyFittingPreset(aggregates int, isSetByOperator func(flag string) bool) (index int) {
	defaults := *c
	smallest := len(presets) - 1
	largerPresets := presets[:smallest] // the largest one first
	for i, preset := range largerPresets {
		*c = defaults
		c.applyPreset(i, max(preset.minAggregates, aggregates), isSetByOperator)
		if c.fits() {
			return i
		}
	}
	*c = defaults
	c.applyPreset(smallest, presets[smallest].minAggregates, isSetByOperator)
	return smallest
}

// fits reports whether the maximum memory of the configuration is within the memory limit.
func (c *Config) fits() bool { return memory.Total(c.memoryParts()) <= c.MemoryLimit.Bytes }

// applyPreset sets the number of aggregates (label sets), and lowers the other limits to those of the
// preset with the given index. It does not change limits that the operator has set.
func (c *Config) applyPreset(index, aggregates int, isSetByOperator func(flag string) bool) {
	preset := &presets[index]
	c.Preset = preset.name
	c.lowerLimits(index, isSetByOperator)
	c.setAggregates(aggregates, preset.sketchBytesPerAggregate, isSetByOperator)
}

// lowerLimits lowers each limit to its value in presets[index]. It does not change limits that the operator has set,
// or that are lower already.
func (c *Config) lowerLimits(index int, isSetByOperator func(flag string) bool) {
	isLargest := index == 0
	if isLargest {
		return // the largest preset keeps all defaults
	}
	valueIndex := index - 1 // presetLimits has no values for the largest preset
	limits := c.limits()
	for _, preset := range presetLimits {
		if isSetByOperator(preset.flag) {
			continue
		}
		newValue := max(preset.values[valueIndex], c.minLimit(preset.flag))
		limit := limits[preset.flag]
		*limit = min(*limit, newValue)
	}
}

// minLimit returns the lowest valid value of a limit that depends on another limit. For example, the memory
// for all requests must be enough for one request of the maximum size. It returns 0 for other limits.
func (c *Config) minLimit(flag string) int {
	if flag == "max-key-bytes-total" {
		return c.Admit.MaxKeyBytes
	}
	for _, kind := range receiverKinds {
		if flag == kind.name+"-max-body-bytes" {
			return kind.config(c).LeastBodyBytes()
		}
	}
	return 0
}

// setAggregates sets the maximum number of aggregates (label sets). The memory limits of their labels and
// their sketches (histograms) become proportional to this number. It does not change limits that the operator
// has set.
func (c *Config) setAggregates(aggregates, sketchBytesPerAggregate int, isSetByOperator func(flag string) bool) {
	limits := &c.Aggregate
	if !isSetByOperator(maxAggregatesFlag) {
		limits.MaxAggregates = aggregates
	}
	if !isSetByOperator("label-bytes") {
		limits.LabelBytes = max(minTableBytes, limits.MaxAggregates*labelBytesPerAggregate)
	}
	if !isSetByOperator("sketch-bytes") {
		limits.SketchBytes = max(minTableBytes, limits.MaxAggregates*sketchBytesPerAggregate)
	}
}

// addAggregates raises the maximum number of aggregates (label sets) in steps as far as the memory limit
// permits, but not above maximum. It does nothing if the operator has set the number.
func (c *Config) addAggregates(maximum, sketchBytesPerAggregate int, isSetByOperator func(flag string) bool) {
	if isSetByOperator(maxAggregatesFlag) {
		return
	}
	aggregates := c.Aggregate.MaxAggregates + aggregateStep
	for aggregates <= maximum {
		larger := *c
		larger.setAggregates(aggregates, sketchBytesPerAggregate, isSetByOperator)
		if !larger.fits() {
			return
		}
		*c = larger
		aggregates += aggregateStep
	}
}
