package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/lab/peers/agent"
	"github.com/spanstatsd/spanstatsd/lab/workload"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// newSpanMetrics uses the connector with default configuration: keyed by service, span name,
// kind and status, with fixed histogram buckets.
func newSpanMetrics(spans []workload.Snapshot) (func(), error) {
	return spanMetrics(spans, func(*spanmetricsconnector.Config) {})
}

// newSpanMetricsLabels uses the connector with the same labels as our daemon, and with buckets
// that grow like those of a sketch.
func newSpanMetricsLabels(spans []workload.Snapshot) (func(), error) {
	return spanMetrics(spans, func(c *spanmetricsconnector.Config) {
		for _, name := range []string{
			"operation", "span.type", "http.status_code", "http.method", "http.endpoint", "peer.hostname",
			"peer.service", "db.name",
		} {
			c.Dimensions = append(c.Dimensions, spanmetricsconnector.Dimension{Name: name})
		}
		exponential := spanmetricsconnector.ExponentialHistogramConfig{MaxSize: 160}
		c.Histogram.Exponential = configoptional.Some(exponential)
	})
}

func spanMetrics(spans []workload.Snapshot, change func(*spanmetricsconnector.Config)) (func(), error) {
	factory := spanmetricsconnector.NewFactory()
	config := factory.CreateDefaultConfig().(*spanmetricsconnector.Config)
	change(config)
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configure spanmetrics: %w", err)
	}
	settings := connector.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}
	sink, err := factory.CreateTracesToMetrics(context.Background(), settings, config, consumertest.NewNop())
	if err != nil {
		return nil, fmt.Errorf("make spanmetrics: %w", err)
	}
	var batches []ptrace.Traces
	for ; len(spans) > 0; spans = spans[min(agent.TraceSpans, len(spans)):] {
		batches = append(batches, otelTraces(spans[:min(agent.TraceSpans, len(spans))]))
	}
	return func() {
		for _, batch := range batches {
			if err := sink.ConsumeTraces(context.Background(), batch); err != nil {
				panic("BUG: spanmetrics refuses spans: " + err.Error())
			}
		}
	}, nil
}

// otelTraces returns spans as a receiver passes them on: grouped by service into resources.
func otelTraces(spans []workload.Snapshot) ptrace.Traces {
	traces := ptrace.NewTraces()
	services := map[string]ptrace.SpanSlice{}
	for i := range spans {
		service := spans[i].Key.Service
		to, known := services[service]
		if !known {
			resource := traces.ResourceSpans().AppendEmpty()
			resource.Resource().Attributes().PutStr("service.name", service)
			to = resource.ScopeSpans().AppendEmpty().Spans()
			services[service] = to
		}
		fillOtelSpan(to.AppendEmpty(), &spans[i])
	}
	return traces
}

var otelKinds = map[string]ptrace.SpanKind{
	"server": ptrace.SpanKindServer, "client": ptrace.SpanKindClient, "internal": ptrace.SpanKindInternal,
}

func fillOtelSpan(dst ptrace.Span, s *workload.Snapshot) {
	k := s.Key
	dst.SetName(k.Resource)
	dst.SetKind(otelKinds[k.Kind])
	dst.SetStartTimestamp(pcommon.Timestamp(s.End - int64(s.Duration)))
	dst.SetEndTimestamp(pcommon.Timestamp(s.End))
	if s.Flags&span.Error != 0 {
		dst.Status().SetCode(ptrace.StatusCodeError)
	}
	attributes := dst.Attributes()
	attributes.PutStr("operation", k.Operation)
	attributes.PutStr("span.type", k.Type)
	if k.HTTPStatus != 0 {
		attributes.PutInt("http.status_code", int64(k.HTTPStatus))
		attributes.PutStr("http.method", k.HTTPMethod)
		attributes.PutStr("http.endpoint", k.HTTPEndpoint)
	}
	for _, tag := range k.PeerTags {
		name, value, _ := strings.Cut(tag, ":")
		attributes.PutStr(name, value)
	}
}
