package points

// Config says what points are called.
type Config struct {
	Dialect    Dialect    // Spanmetrics if empty
	Dimensions Dimensions // of Spanmetrics
	Instance   string     // collector.instance.id of Spanmetrics; none if empty

	// Labels says that resources and attributes are labels of Prometheus, and metrics are called
	// as it has them. A resource is its service alone.
	Labels bool
	Bounds []float64 // of classic buckets, which sketch.CheckBounds accepts; none if empty
}

// dialect makes the one that is configured.
func (c *Config) dialect() dialect {
	if c.Dialect == Datadog {
		return datadog{c.Instance}
	}
	return &spanmetrics{dimensions: c.Dimensions, instance: c.Instance, names: c.metrics()}
}

// metrics are the names of those that count spans and durations, in any dialect but Datadog's.
func (c *Config) metrics() [2]string {
	switch {
	case !c.Labels:
		return [2]string{"traces.span.metrics.calls", "traces.span.metrics.duration"}
	case c.Dialect == Tempo:
		return [2]string{"traces_spanmetrics_calls_total", "traces_spanmetrics_latency"}
	}
	return [2]string{"traces_span_metrics_calls_total", "traces_span_metrics_duration_seconds"}
}

// labels has Tempo's names where others are not the attributes'.
func (c *Config) labels() labelNames {
	switch {
	case !c.Labels:
		return nil
	case c.Dialect == Tempo:
		return labelNames{"service.name": "service"}
	}
	return labelNames{}
}
