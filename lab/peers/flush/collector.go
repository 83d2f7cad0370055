package main

import (
	"context"
	"fmt"
	"math"

	"github.com/jonboulle/clockwork"
	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// exported encodes metrics as the Collector's otlphttp exporter does before it sends them.
func exported(m pmetric.Metrics) []byte {
	body, err := pmetricotlp.NewExportRequestFromMetrics(m).MarshalProto()
	if err != nil {
		panic("BUG: the Collector's exporter refuses metrics: " + err.Error())
	}
	return body
}

// encoded returns a function that encodes the data of requests with the Collector's exporter.
// The data is converted to the Collector's messages in advance.
func (w *otlpWork) encoded(requests [][]byte) func() [][]byte {
	var data []pmetric.Metrics
	for _, request := range requests {
		one := pmetricotlp.NewExportRequest()
		if err := one.UnmarshalProto(request); err != nil {
			panic("BUG: the Collector's library refuses our request: " + err.Error())
		}
		data = append(data, one.Metrics())
	}
	return func() (bodies [][]byte) {
		for _, one := range data {
			bodies = append(bodies, exported(one))
		}
		return bodies
	}
}

// written returns the complete content of a request as a text.
func written(request []byte) string {
	data := pmetricotlp.NewExportRequest()
	if err := data.UnmarshalProto(request); err != nil {
		panic("BUG: the Collector's library refuses a request: " + err.Error())
	}
	text, err := data.MarshalJSON()
	if err != nil {
		panic("BUG: the Collector's library writes no JSON: " + err.Error())
	}
	return string(text)
}

// connector counts everything with the Collector's connector, and returns its flush: the
// connector converts its histograms to messages, and the exporter encodes them. The connector
// uses a clock that triggers the flush.
func (w *otlpWork) connector() (func() [][]byte, error) {
	factory := spanmetricsconnector.NewFactory()
	config := factory.CreateDefaultConfig().(*spanmetricsconnector.Config)
	cache := 2 * aggregates
	config.AggregationTemporality, config.TimestampCacheSize = "AGGREGATION_TEMPORALITY_DELTA", &cache
	config.MetricsFlushInterval = width
	config.Dimensions = []spanmetricsconnector.Dimension{{Name: statusDimension}}
	exponential := spanmetricsconnector.ExponentialHistogramConfig{MaxSize: 160}
	config.Histogram.Exponential = configoptional.Some(exponential)
	config.Histogram.Unit = 1 // seconds
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configure spanmetrics: %w", err)
	}
	clock, flushed := clockwork.NewFakeClockAt(w.opened), make(chan []byte)
	to, err := consumer.NewMetrics(func(_ context.Context, m pmetric.Metrics) error {
		flushed <- exported(m)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make consumer: %w", err)
	}
	settings := connector.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}
	settings.Resource.Attributes().PutStr("collector.instance.id", instance)
	counting, err := factory.CreateTracesToMetrics(clockwork.AddToContext(context.Background(), clock),
		settings, config, to)
	if err != nil {
		return nil, fmt.Errorf("make spanmetrics: %w", err)
	}
	if err := counting.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		return nil, fmt.Errorf("start spanmetrics: %w", err)
	}
	for first := 0; first < len(w.slots); first += aggregates {
		if err := counting.ConsumeTraces(context.Background(), w.traces(first)); err != nil {
			return nil, fmt.Errorf("count by spanmetrics: %w", err)
		}
	}
	return func() [][]byte {
		clock.Advance(width)
		body := <-flushed
		if err := counting.Shutdown(context.Background()); err != nil {
			panic("BUG: spanmetrics does not stop: " + err.Error())
		}
		return [][]byte{body}
	}, nil
}

// traces returns one span per key.
func (w *otlpWork) traces(first int) ptrace.Traces {
	traces := ptrace.NewTraces()
	services := map[string]ptrace.SpanSlice{}
	for i := range w.slots[first : first+aggregates] {
		s := &w.slots[first+i]
		key := &w.keys[s.Key].Key
		to, known := services[key.Service]
		if !known {
			resource := traces.ResourceSpans().AppendEmpty()
			resource.Resource().Attributes().PutStr("service.name", key.Service)
			to = resource.ScopeSpans().AppendEmpty().Spans()
			services[key.Service] = to
		}
		one := to.AppendEmpty()
		one.SetName(key.Resource)
		one.SetKind(ptrace.SpanKindServer)
		one.SetStartTimestamp(pcommon.Timestamp(s.End - int64(s.Duration)))
		one.SetEndTimestamp(pcommon.Timestamp(s.End))
		if s.Flags&span.Error != 0 {
			one.Status().SetCode(ptrace.StatusCodeError)
		}
		one.Attributes().PutInt(statusDimension, int64(key.HTTPStatus))
	}
	return traces
}

// series is the content of a series of the counter and of the series of the histogram with the same labels.
type series struct {
	calls   uint64  // value of the counter of calls
	spans   uint64  // number of spans in the histogram
	seconds float64 // sum of their durations
}

// isLike compares series, with a tolerance for sums that were added in another order.
func (s series) isLike(other series) bool {
	return s.calls == other.calls && s.spans == other.spans &&
		math.Abs(s.seconds-other.seconds) <= 1e-9*other.seconds
}

// seriesOf decodes requests, and returns the series by name and outcome.
func seriesOf(requests [][]byte) (map[string]series, error) {
	all := map[string]series{}
	for _, request := range requests {
		data := pmetricotlp.NewExportRequest()
		if err := data.UnmarshalProto(request); err != nil {
			return nil, err
		}
		addSeries(all, data.Metrics())
	}
	return all, nil
}

func addSeries(all map[string]series, data pmetric.Metrics) {
	name := func(list pcommon.Map) (text string) {
		for _, attribute := range []string{
			"service.name", "span.name", "span.kind", "status.code",
			"collector.instance.id", statusDimension,
		} {
			value, _ := list.Get(attribute)
			text += value.AsString() + " "
		}
		return text
	}
	for _, resource := range data.ResourceMetrics().All() {
		for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
			if m.Type() == pmetric.MetricTypeSum {
				for _, p := range m.Sum().DataPoints().All() {
					s := all[name(p.Attributes())]
					s.calls += uint64(p.IntValue())
					all[name(p.Attributes())] = s
				}
				continue
			}
			for _, p := range m.ExponentialHistogram().DataPoints().All() {
				s := all[name(p.Attributes())]
				s.spans, s.seconds = s.spans+p.Count(), s.seconds+p.Sum()
				all[name(p.Attributes())] = s
			}
		}
	}
}
