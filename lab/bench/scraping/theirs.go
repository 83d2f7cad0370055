package main

import (
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
)

// growth is the bucket growth factor of a native histogram at the finest scale of the daemon's
// exporter.
const growth = 1.022

// theirs is a client_golang registry that counted the same spans as our exporter.
type theirs struct {
	handler  http.Handler
	families []*dto.MetricFamily // metric families as gathered from the registry
}

// theirsLike returns one with the names and labels of our exporter's metrics.
func theirsLike(w *work) (*theirs, error) {
	ours, err := families(w.exporter, forms[0])
	if err != nil {
		return nil, err
	}
	var calls, durations *dto.MetricFamily
	for _, f := range ours {
		if f.GetType() == dto.MetricType_COUNTER {
			calls = f
		} else {
			durations = f
		}
	}
	if len(calls.GetMetric()) != allSeries || len(durations.GetMetric()) != allSeries {
		return nil, fmt.Errorf("read our exporter: %d families, not two with %d series each", len(ours),
			allSeries)
	}
	registry := prometheus.NewRegistry()
	counters := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: calls.GetName(), Help: calls.GetHelp(),
	}, labelNames(calls))
	histograms := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: durations.GetName(), Help: durations.GetHelp(), Buckets: bounds,
		NativeHistogramBucketFactor: growth,
	}, labelNames(durations))
	registry.MustRegister(counters, histograms)
	labels := map[string]prometheus.Labels{}
	for _, m := range calls.Metric {
		list := prometheus.Labels{}
		for _, pair := range m.Label {
			list[pair.GetName()] = pair.GetValue()
		}
		labels[list["span_name"]] = list
	}
	for i := range w.slots {
		s := &w.slots[i]
		of, known := labels[w.keys[s.Key].Key.Resource]
		if !known {
			return nil, fmt.Errorf("read our exporter: no series of %q", w.keys[s.Key].Key.Resource)
		}
		counters.With(of).Inc()
		histograms.With(of).Observe(sketch.Truncate(s.Duration) / 1e9)
	}
	t := &theirs{handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, EnableOpenMetricsTextCreatedSamples: true,
	})}
	t.families, err = registry.Gather()
	return t, err
}

func labelNames(f *dto.MetricFamily) (names []string) {
	for _, pair := range f.Metric[0].Label {
		names = append(names, pair.GetName())
	}
	return names
}

// encode encodes the families gathered before.
func (t *theirs) encode(f form) (int, error) {
	out := &thrown{}
	to, finish := f.packed(out)
	format := expfmt.NegotiateAccept(f.header(), expfmt.DefaultOpenMetricsAcceptedFormats()...)
	encoder := expfmt.NewEncoder(to, format, expfmt.WithCreatedLines())
	for _, family := range t.families {
		if err := encoder.Encode(family); err != nil {
			return 0, err
		}
	}
	if closer, is := encoder.(io.Closer); is {
		if err := closer.Close(); err != nil {
			return 0, err
		}
	}
	return out.bytes, finish()
}
