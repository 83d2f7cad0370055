package health

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/apm"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// collector turns the rooms' statistics into metrics at each scrape.
type collector struct {
	sources Sources
	version string
	budget  int64
	limit   memory.Limit
	refused func() uint64
}

// scrape is all that metrics are made of, read once.
type scrape struct {
	look
	apm apm.Stats
	*collector
}

// metric is one of ours, and how it is made of a scrape.
type metric struct {
	desc *prometheus.Desc
	emit func(s *scrape, emit emitter)
}

// emitter takes one value of a metric.
type emitter func(kind prometheus.ValueType, value float64, labels ...string)

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range metrics {
		to <- m.desc
	}
	for _, h := range histograms {
		to <- h.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := &scrape{c.sources.look(), apm.NoStats(), c}
	if c.sources.APM != nil {
		s.apm = c.sources.APM.Stats()
	}
	for _, m := range metrics {
		m.emit(s, func(kind prometheus.ValueType, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(m.desc, kind, value, labels...)
		})
	}
	for _, m := range histograms {
		h := m.of(s)
		cumulative, below := map[float64]uint64{}, uint64(0)
		for i, bound := range h.Bounds {
			below += h.Counts[i]
			cumulative[bound] = below
		}
		to <- prometheus.MustNewConstHistogram(m.desc, h.Count(), h.Sum, cumulative)
	}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("spanstatsd_"+name, help, labels, nil)
}

type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

func counter[N number](name, help string, of func(*scrape) N) metric {
	return metric{describe(name, help), func(s *scrape, emit emitter) { emit(prometheus.CounterValue, float64(of(s))) }}
}

func gauge[N number](name, help string, of func(*scrape) N) metric {
	return metric{describe(name, help), func(s *scrape, emit emitter) { emit(prometheus.GaugeValue, float64(of(s))) }}
}

// counters has one value for each reason, result or field.
func counters[K ~string](name, help, label string, of func(*scrape) map[K]uint64) metric {
	return metric{describe(name, help, label), func(s *scrape, emit emitter) {
		for key, value := range of(s) {
			emit(prometheus.CounterValue, float64(value), string(key))
		}
	}}
}

// ofRings has one value for each drainer's ring.
func ofRings(name, help string, of func(*aggregate.DrainerStats) int) metric {
	return metric{describe(name, help, "ring"), func(s *scrape, emit emitter) {
		for i := range s.agg.Drainers {
			emit(prometheus.GaugeValue, float64(of(&s.agg.Drainers[i])), strconv.Itoa(i))
		}
	}}
}

// histogram is a metric that is made of counts by bound.
type histogram struct {
	desc *prometheus.Desc
	of   func(*scrape) flush.Histogram
}
