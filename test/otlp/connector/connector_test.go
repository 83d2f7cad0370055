package connector

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// connected returns the connector's series for the requests, counted in a single flush.
func connected(t *testing.T, requests []ptrace.Traces) allSeries {
	t.Helper()
	const interval = time.Minute
	factory := spanmetricsconnector.NewFactory()
	config := factory.CreateDefaultConfig().(*spanmetricsconnector.Config)
	cache := 1 << 20
	config.AggregationTemporality, config.TimestampCacheSize,
		config.MetricsFlushInterval = "AGGREGATION_TEMPORALITY_DELTA", &cache, interval
	config.ExcludeDimensions = []string{"collector.instance.id"}
	for _, name := range dimensions() {
		config.Dimensions = append(config.Dimensions, spanmetricsconnector.Dimension{Name: name})
	}
	exponential := spanmetricsconnector.ExponentialHistogramConfig{MaxSize: 160}
	config.Histogram.Exponential = configoptional.Some(exponential)
	config.Histogram.Unit = 1 // seconds
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	clock, flushed := clockwork.NewFakeClock(), make(chan allSeries)
	to, err := consumer.NewMetrics(func(_ context.Context, m pmetric.Metrics) error {
		all := allSeries{}
		all.add(m)
		flushed <- all
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	settings := connector.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}
	counting, err := factory.CreateTracesToMetrics(clockwork.AddToContext(t.Context(), clock), settings,
		config, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := counting.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if err := counting.ConsumeTraces(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(interval)
	all := <-flushed
	if err := counting.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return all
}

// unsampled returns the same requests with an adjusted count of 1 for each span.
func unsampled(requests []ptrace.Traces) (all []ptrace.Traces) {
	for _, request := range requests {
		one := ptrace.NewTraces()
		request.CopyTo(one)
		for _, resource := range one.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					span.TraceState().FromRaw("")
				}
			}
		}
		all = append(all, one)
	}
	return all
}

// TestConnector_SameCounts sends random requests over each protocol in turn. Calls are compared
// with the connector's calls. Histograms are compared with those of the connector for unsampled spans,
// since the daemon's histograms count each received span once.
func TestConnector_SameCounts(t *testing.T) {
	d := startDaemon(t, "--otlp-dimensions=all,peer.service,server.address") // of every kind, as the connector
	s := newSender(t, d)
	r := rand.New(rand.NewPCG(23, 1))
	var requests []ptrace.Traces
	spans := 0
	for i := range 120 {
		request := randomTraces(r)
		requests, spans = append(requests, request), spans+request.SpanCount()
		s.send(request, way(i)%ways)
	}
	ours, calls, theirs := d.stop(spans), connected(t, requests), connected(t, unsampled(requests))
	if len(theirs) < 2000 {
		t.Errorf("only %d series", len(theirs))
	}
	wrong := 0
	for _, name := range slices.Sorted(maps.Keys(together(ours, theirs))) {
		if differs := compare(name, ours[name], theirs[name], calls[name]); differs != "" && wrong < 10 {
			t.Errorf("%s: %s", name, differs)
			wrong++
		}
	}
	t.Logf("%d spans in %d series", spans, len(theirs))
}

// together merges the series of a and b.
func together(a, b allSeries) allSeries {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// compare returns the difference between a series and the connector's series, or "" if they are equal.
func compare(name string, ours, theirs, calls *series) string {
	switch {
	case ours == nil:
		return "only the connector has it"
	case theirs == nil:
		return "only the daemon has it"
	case ours.calls != calls.calls:
		return fmt.Sprintf("%d calls, and the connector has %d", ours.calls, calls.calls)
	case strings.Contains(name, mixed):
		ours.seconds = theirs.seconds // see TestConnector_DocumentedDifferences
	}
	return ours.differs(theirs)
}
