package daemon

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// smallMemory is the limit up to which what only many tracers need is made smaller even
// where more would fit.
const smallMemory = 128 << 20

// There is at most one aggregate for each aggregateMemory of a limit. Other limits become
// smaller for half as many aggregates as that, and for baseAggregates in any case.
const (
	aggregateMemory = 16 << 10
	baseAggregates  = 3072
	mostAggregates  = 32768
	moreAggregates  = 256
)

// sketchesOfOne is no limit: it is how many bytes of --sketch-bytes there are for each aggregate.
const sketchesOfOne = "sketches of an aggregate"

// smaller are the limits that give way where memory is short, in this order, until
// everything fits, with those of doors that are like the one that is named. A limit that was set by
// hand stays as it was set, and a limit that must hold it stays large enough.
var smaller = []struct {
	limit string
	value int
	small bool // also wherever there is no more than smallMemory
}{
	{"max-connections", 256, true},
	{"max-key-bytes", 2 << 20, true},
	{"max-key-bytes-in-all", 8 << 20, true},
	{drainersLimit, 4, true}, // each has tables for all aggregates
	{drainersLimit, 2, true},
	{drainersLimit, 1, true}, // which counts millions of spans a second
	{buffersLimit, 4 << 20, false},
	{"apm-max-connections", 128, true},
	{"apm-max-body", 4 << 20, false}, // what is larger loses nothing, since the agent counts it
	{"apm-max-body-bytes", 8 << 20, false},
	{apmCountersLimit, 1, true},
	{nativeLimit, 80, true}, // still finer than classic ones
	{"otlp-max-connections", 32, true},
	{"otlp-max-body", 4 << 20, false}, // what most servers of gRPC take
	{"otlp-max-body-bytes", 16 << 20, false},
	{otlpCountersLimit, 1, true},
	{"otlp-max-body", 1 << 20, false},
	{"otlp-max-body-bytes", 4 << 20, false},
	{sketchesOfOne, 1 << 10, false},
	{"apm-max-body", 1 << 20, false},
	{"apm-max-body-bytes", 4 << 20, false},
	{"apm-max-connections", 64, false}, // an idle one gives way to the next
	{"max-connections", 128, false},
	{"retry-bytes", 8 << 20, false},
	{"ring-slots", 8192, false},
	{"ring-slots", 4096, true},
	{"max-connections", 64, false},
	{"max-key-bytes-in-all", 4 << 20, false},
	{buffersLimit, 2 << 20, false},
	{"max-origins", 64, false},
	{nativeLimit, 40, false},
	{sketchesOfOne, 640, false},
	{"apm-max-body", 128 << 10, false},
	{"apm-max-body-bytes", 1 << 20, false},
	{"apm-max-connections", 32, false},
	{"otlp-max-body", 512 << 10, false},
	{"otlp-max-body-bytes", 2 << 20, false},
	{otlpStreamsLimit, 4, false},
	{"otlp-max-connections", 24, false}, // an idle one gives way to the next
	{"max-connections", 32, false},
	{"retry-bytes", 4 << 20, false},
	{"max-key-bytes", 1 << 20, false},
	{"max-key-bytes-in-all", 2 << 20, false},
	{"apm-max-connections", 24, false},
	{"max-connections", 24, false},
	{"apm-max-body", 96 << 10, false},
	{otlpStreamsLimit, 2, false},
	{"otlp-max-connections", 16, false},
	{"otlp-max-body", 256 << 10, false},
	{"otlp-max-body-bytes", 1 << 20, false},
	{nativeLimit, 20, false},
	{aggregatesLimit, 2048, false},
	{"apm-max-body", 64 << 10, false},
	{"otlp-max-connections", 8, false},
	{"max-origins", 32, false},
	{"max-key-bytes", 512 << 10, false},
	{"max-key-bytes-in-all", 1 << 20, false},
	{"retry-bytes", 2 << 20, false},
	{aggregatesLimit, 1024, false},
	{"otlp-max-body", 128 << 10, false}, // what is larger is lost
	{"otlp-max-body-bytes", 1 << 20, false},
	{aggregatesLimit, 256, false},
}

// FitMemory chooses limits for the memory there is, where there is a limit on it: a number of
// aggregates, then smaller limits until everything fits, then as many aggregates more as there
// is room for. A limit that is set by hand stays. It returns the names of those that it has
// changed. Check says whether everything fits in the end.
func FitMemory(c *Config, limit memory.Limit, byHand func(limit string) bool) (changed []string) {
	c.MemoryLimit = limit
	if !limit.Known() {
		return nil
	}
	f := newMemoryFit(c, byHand)
	most := int(min(limit.Bytes/aggregateMemory, mostAggregates))
	f.set(aggregatesLimit, max(baseAggregates, most/2))
	f.follow()
	for _, s := range smaller {
		for _, name := range limitsOf(s.limit) {
			if f.byHand(name) || f.fits() && !(s.small && limit.Bytes <= smallMemory) {
				continue
			}
			if value := max(s.value, f.least(name)); value < f.value(name) {
				f.set(name, value)
				f.follow()
			}
		}
	}
	f.addAggregates(most)
	return f.changed
}

// addAggregates gives the memory that is left to aggregates.
func (f *memoryFit) addAggregates(most int) {
	if f.byHand(aggregatesLimit) {
		return
	}
	least := f.value(aggregatesLimit)
	for n := max(least, most/moreAggregates*moreAggregates); ; n -= moreAggregates {
		f.set(aggregatesLimit, max(least, n))
		f.follow()
		if n <= least || f.fits() {
			return
		}
	}
}

const (
	// labelsOfOne is the memory of one aggregate's labels: TestWhatAnAggregateTakes measures it.
	labelsOfOne  = 768
	fullSketches = 2 << 10
	leastBytes   = 1 << 20 // of labels, and of sketches
)

// memoryFit is the limits that follow the memory there is.
type memoryFit struct {
	config  *Config
	limits  map[string]*int
	byHand  func(limit string) bool
	changed []string
}

func newMemoryFit(c *Config, byHand func(limit string) bool) *memoryFit {
	f := &memoryFit{config: c, limits: c.limits(), byHand: byHand}
	sketches := fullSketches
	f.limits[sketchesOfOne] = &sketches
	return f
}

// follow gives the aggregates the memory for labels and sketches that so many need.
func (f *memoryFit) follow() {
	aggregates := f.value(aggregatesLimit)
	f.set("label-bytes", max(leastBytes, aggregates*labelsOfOne))
	f.set("sketch-bytes", max(leastBytes, aggregates*f.value(sketchesOfOne)))
}

func (f *memoryFit) fits() bool { return memory.Total(f.config.parts()) <= f.config.MemoryLimit.Bytes }

func (f *memoryFit) value(limit string) int { return *f.limits[limit] }

// least is what a limit must be for others that it has to hold.
func (f *memoryFit) least(limit string) int {
	if limit == "max-key-bytes-in-all" {
		return f.value("max-key-bytes")
	}
	for _, k := range doorKinds {
		if limit == k.name+"-max-body-bytes" {
			return k.config(f.config).LeastBodyBytes()
		}
	}
	return 0
}

// set chooses a limit that nobody set by hand.
func (f *memoryFit) set(limit string, value int) {
	if f.byHand(limit) || value == f.value(limit) {
		return
	}
	*f.limits[limit] = value
	if !slices.Contains(f.changed, limit) {
		f.changed = append(f.changed, limit)
	}
}
