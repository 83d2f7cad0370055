package main

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/signaltometricsconnector"
	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/signaltometricsconnector/config"
	"github.com/spanstatsd/spanstatsd/lab/bench/recorded"
	"go.opentelemetry.io/collector/config/configoptional"
)

// newSignalToMetrics returns a function that counts a request with the connector signal_to_metrics: a
// histogram of durations by ourLabels, with buckets that grow like those of a sketch. The connector
// can't count by a span's name, kind or status, because these are not attributes. It keeps nothing between
// requests: its cost includes a delta for each series of a request, and a Collector needs another component
// to add these up.
func newSignalToMetrics() (count func(*recorded.Request) error, err error) {
	factory := signaltometricsconnector.NewFactory()
	c := factory.CreateDefaultConfig().(*config.Config)
	durations := config.MetricInfo{
		Name: "duration", Unit: "s",
		ExponentialHistogram: configoptional.Some(config.ExponentialHistogram{
			MaxSize: 160, Count: "Int(AdjustedCount())", Value: "Seconds(span.end_time - span.start_time)",
		}),
	}
	for _, name := range ourLabels {
		durations.Attributes = append(durations.Attributes, config.Attribute{Key: name, Optional: true})
	}
	c.Spans = []config.MetricInfo{durations}
	return newConnector(factory, c)
}
