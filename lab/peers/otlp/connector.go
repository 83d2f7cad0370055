package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"github.com/spanstatsd/spanstatsd/lab/bench/recorded"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// ourLabels are the attributes from which our labels are derived, under their current names and those used
// before 2023.
var ourLabels = []string{
	"deployment.environment.name", "service.version", "host.name", "container.id", "service.instance.id",
	"http.request.method", "http.method", "http.route", "http.response.status_code", "http.status_code",
	"rpc.grpc.status_code", "rpc.response.status_code", "rpc.system", "rpc.service", "rpc.method",
	"db.system.name", "db.system", "db.namespace", "db.name", "db.collection.name", "db.operation.name",
	"messaging.system", "messaging.destination.name", "messaging.operation.name", "peer.service",
	"server.address",
}

// asItComes leaves the connector's default configuration: keyed by service, span name, kind and
// status, with fixed histogram buckets.
func asItComes(*spanmetricsconnector.Config) {}

// withOurLabels makes the connector count by ourLabels, too, with buckets that grow like those of a
// sketch.
func withOurLabels(c *spanmetricsconnector.Config) {
	for _, name := range ourLabels {
		c.Dimensions = append(c.Dimensions, spanmetricsconnector.Dimension{Name: name})
	}
	exponential := spanmetricsconnector.ExponentialHistogramConfig{MaxSize: 160}
	c.Histogram.Exponential = configoptional.Some(exponential)
}

// newSpanMetrics returns a function that counts a request with the connector span_metrics.
func newSpanMetrics(change func(*spanmetricsconnector.Config)) (count func(*recorded.Request) error,
	err error,
) {
	factory := spanmetricsconnector.NewFactory()
	config := factory.CreateDefaultConfig().(*spanmetricsconnector.Config)
	change(config)
	return newConnector(factory, config)
}

// newConnector returns a function that decodes a request and counts it, as the Collector does.
func newConnector(factory connector.Factory, config interface{ Validate() error }) (
	count func(*recorded.Request) error, err error,
) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configure %s: %w", factory.Type(), err)
	}
	settings := connector.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}
	sink, err := factory.CreateTracesToMetrics(context.Background(), settings, config, consumertest.NewNop())
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", factory.Type(), err)
	}
	return func(r *recorded.Request) error {
		request, err := decoded(r)
		if err != nil {
			return err
		}
		if got := request.Traces().SpanCount(); got != r.Spans {
			return fmt.Errorf("decode request: it has %d spans, not %d", got, r.Spans)
		}
		return sink.ConsumeTraces(context.Background(), request.Traces())
	}, nil
}

// decoded decodes a request with the Collector's library.
func decoded(r *recorded.Request) (ptraceotlp.ExportRequest, error) {
	request, message := ptraceotlp.NewExportRequest(), r.Message
	if isPacked(r) {
		from, err := gzip.NewReader(bytes.NewReader(r.Body))
		if err != nil {
			return request, err
		}
		if message, err = io.ReadAll(from); err != nil {
			return request, err
		}
	}
	if r.IsJSON() {
		return request, request.UnmarshalJSON(message)
	}
	return request, request.UnmarshalProto(message)
}
