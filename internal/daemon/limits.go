package daemon

import "slices"

// Limits that have no flag, because nobody would turn them.
const (
	buffersLimit      = "buffers of large frames"
	apmCountersLimit  = "counters of traces"
	otlpCountersLimit = "counters of OTLP"
	otlpStreamsLimit  = "streams of OTLP"
)

// Limits that others follow. The last is none: it is how many bytes of --sketch-bytes there are
// for each aggregate.
const (
	aggregatesLimit = "max-aggregates"
	drainersLimit   = "drainers"
	sketchesOfOne   = "sketches of an aggregate"
)

// limits are the numbers that memory or descriptors decide, by the names of their flags.
func (c *Config) limits() map[string]*int {
	return map[string]*int{
		aggregatesLimit: &c.Aggregate.MaxAggregates, "label-bytes": &c.Aggregate.LabelBytes,
		"sketch-bytes": &c.Aggregate.SketchBytes, "max-origins": &c.Aggregate.MaxOrigins,
		drainersLimit: &c.Aggregate.Drainers, "ring-slots": &c.Aggregate.RingSlots,
		"max-key-bytes": &c.Admit.MaxKeyBytes, "max-key-bytes-in-all": &c.Admit.MaxKeyBytesInAll,
		"retry-bytes": &c.Flush.RetryBytes, "max-connections": &c.Ingest.MaxConnections,
		buffersLimit: &c.Ingest.MaxBufferBytes, apmCountersLimit: &c.APM.Counters,
		"apm-max-body": &c.APM.MaxBody, "apm-max-body-bytes": &c.APM.MaxBodyBytes,
		"apm-max-connections": &c.APM.MaxConnections, otlpCountersLimit: &c.OTLP.Counters,
		"otlp-max-body": &c.OTLP.MaxBody, "otlp-max-body-bytes": &c.OTLP.MaxBodyBytes,
		"otlp-max-connections": &c.OTLP.MaxConnections, otlpStreamsLimit: &c.OTLP.MaxStreams,
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

func (f *memoryFit) fits() bool { return f.config.Memory().Total <= f.config.MemoryLimit.Bytes }

// value is a limit, 0 for none.
func (f *memoryFit) value(limit string) int {
	if limit == "" {
		return 0
	}
	return *f.limits[limit]
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
