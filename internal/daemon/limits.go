package daemon

import "strings"

// Limits that have no flag, because nobody would turn them.
const (
	buffersLimit      = "buffers of large frames"
	countersOf        = "counters of "
	apmCountersLimit  = countersOf + "apm"
	otlpCountersLimit = countersOf + "otlp"
	otlpStreamsLimit  = "streams of OTLP"
	nativeLimit       = "native buckets of a series"
)

// Limits that others follow.
const (
	aggregatesLimit = "max-aggregates"
	drainersLimit   = "drainers"
)

// limitsOf are the limits that one stands for: its own, and those of doors that are like its door.
func limitsOf(limit string) []string {
	names := []string{limit}
	for _, k := range doorKinds {
		if k.like != "" && strings.Contains(limit, k.like) {
			names = append(names, strings.Replace(limit, k.like, k.name, 1))
		}
	}
	return names
}

// limits are the numbers that memory or descriptors decide, by the names of their flags.
func (c *Config) limits() map[string]*int {
	all := map[string]*int{
		aggregatesLimit: &c.Aggregate.MaxAggregates, "label-bytes": &c.Aggregate.LabelBytes,
		"sketch-bytes": &c.Aggregate.SketchBytes, "max-origins": &c.Aggregate.MaxOrigins,
		drainersLimit: &c.Aggregate.Drainers, "ring-slots": &c.Aggregate.RingSlots,
		"max-key-bytes": &c.Admit.MaxKeyBytes, "max-key-bytes-in-all": &c.Admit.MaxKeyBytesInAll,
		"retry-bytes": &c.Flush.RetryBytes, "max-connections": &c.Ingest.MaxConnections,
		buffersLimit: &c.Ingest.MaxBufferBytes, otlpStreamsLimit: &c.OTLP.MaxStreams,
		nativeLimit: &c.NativeBuckets,
	}
	for _, k := range doorKinds {
		in := k.common(c)
		all[k.name+"-max-body"], all[k.name+"-max-body-bytes"] = &in.MaxBody, &in.MaxBodyBytes
		all[k.name+"-max-connections"], all[countersOf+k.name] = &in.MaxConnections, &in.Counters
	}
	return all
}
