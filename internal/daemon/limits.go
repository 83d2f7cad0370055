package daemon

// Limits that have no flag, because nobody would turn them.
const (
	buffersLimit      = "buffers of large frames"
	apmCountersLimit  = "counters of traces"
	otlpCountersLimit = "counters of OTLP"
	otlpStreamsLimit  = "streams of OTLP"
)

// Limits that others follow.
const (
	aggregatesLimit = "max-aggregates"
	drainersLimit   = "drainers"
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
