package status

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
)

// collector turns the rooms' statistics into metrics at each scrape.
type collector struct {
	sources Sources
	version string
	budget  int64
	limit   memory.Limit
	refused func() uint64

	logLinesLost func() uint64
	died         func() int
	lostToKills  func() recovery.Losses
}

// scrape is all that metrics are made of, read once.
type scrape struct {
	snapshot
	*collector
}

// metric is one of ours, and how it is made of a scrape.
type metric struct {
	desc *prometheus.Desc
	emit func(s *scrape, emit emitter)
}

// emitter takes the values of one metric.
type emitter struct {
	desc *prometheus.Desc
	to   chan<- prometheus.Metric
}

func (e emitter) value(kind prometheus.ValueType, value float64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(e.desc, kind, value, labels...)
}

// histogram has counts by bound.
func (e emitter) histogram(h export.Histogram, labels ...string) {
	cumulative, below := map[float64]uint64{}, uint64(0)
	for i, bound := range h.Bounds {
		below += h.Counts[i]
		cumulative[bound] = below
	}
	e.to <- prometheus.MustNewConstHistogram(e.desc, h.Count(), h.Sum, cumulative, labels...)
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("spanstatsd_"+name, help, labels, nil)
}

type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

func counter[N number](name, help string, of func(*scrape) N) metric {
	return metric{describe(name, help), func(s *scrape, emit emitter) {
		emit.value(prometheus.CounterValue, float64(of(s)))
	}}
}

func gauge[N number](name, help string, of func(*scrape) N) metric {
	return metric{describe(name, help), func(s *scrape, emit emitter) {
		emit.value(prometheus.GaugeValue, float64(of(s)))
	}}
}

// counters has one value for each reason, result or field.
func counters[K ~string](name, help, label string, of func(*scrape) map[K]uint64) metric {
	return metric{describe(name, help, label), func(s *scrape, emit emitter) {
		for key, value := range of(s) {
			emit.value(prometheus.CounterValue, float64(value), string(key))
		}
	}}
}

// ofRings has one value for each drainer's ring.
func ofRings(name, help string, of func(*aggregate.DrainerStats) int) metric {
	return metric{describe(name, help, "ring"), func(s *scrape, emit emitter) {
		for i := range s.agg.Drainers {
			emit.value(prometheus.GaugeValue, float64(of(&s.agg.Drainers[i])), strconv.Itoa(i))
		}
	}}
}

// ofDestinations has one value for each destination.
func ofDestinations[N number](kind prometheus.ValueType, name, help string,
	of func(*scrape, *export.Stats) N,
) metric {
	return metric{describe(name, help, "destination"), func(s *scrape, emit emitter) {
		for i := range s.out {
			emit.value(kind, float64(of(s, &s.out[i].Stats)), s.out[i].Name())
		}
	}}
}

// ofFound has 1 or 0 for each destination but one that is looked for: nobody can say how that does, and no
// alert is to stand for it.
func ofFound(name, help string, is func(*export.Stats) bool) metric {
	return metric{describe(name, help, "destination"), func(s *scrape, emit emitter) {
		for i := range s.out {
			if d := &s.out[i]; !d.LookedFor {
				emit.value(prometheus.GaugeValue, float64(oneIf(is(&d.Stats))), d.Name())
			}
		}
	}}
}

// byReason has one value for each destination and reason or result.
func byReason[K ~string](name, help, label string, of func(*export.Stats) map[K]uint64) metric {
	return metric{describe(name, help, "destination", label), func(s *scrape, emit emitter) {
		for i := range s.out {
			for key, value := range of(&s.out[i].Stats) {
				emit.value(prometheus.CounterValue, float64(value), s.out[i].Name(), string(key))
			}
		}
	}}
}

// oneIf is a gauge of what is so or not.
func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// doorMetrics are those that each door has, behind the first word of its flags.
var doorMetrics = []struct {
	name, help string
	kind       prometheus.ValueType
	of         func(s *receiver.Shown) float64
}{
	{
		"connections", "Connected senders.",
		prometheus.GaugeValue, func(s *receiver.Shown) float64 { return float64(s.Connections) },
	},
	{
		"refused_connections_total", "Connections over the limit, in total or for one process.",
		prometheus.CounterValue, func(s *receiver.Shown) float64 { return float64(s.Refused) },
	},
	{
		"waited_requests_total", "Requests that waited for an unreachable destination.",
		prometheus.CounterValue, func(s *receiver.Shown) float64 { return float64(s.Waited) },
	},
	{
		"waiting_requests", "Requests waiting for an unreachable destination.",
		prometheus.GaugeValue, func(s *receiver.Shown) float64 { return float64(s.Waiting) },
	},
	{
		"walked_bytes_total", "Bytes of requests parsed.",
		prometheus.CounterValue, func(s *receiver.Shown) float64 { return float64(s.Bytes) },
	},
	{
		"origins", "Remembered origins.",
		prometheus.GaugeValue, func(s *receiver.Shown) float64 { return float64(s.Origins) },
	},
	{
		"buffered_bytes", "Bytes of buffered requests.",
		prometheus.GaugeValue, func(s *receiver.Shown) float64 { return float64(s.BufferedBytes) },
	},
}

// metrics are those of the door: a counter of requests by result, of those that were to go on where
// there are such, and the numbers above.
func (d *DoorSource) metrics(shown *receiver.Shown) (all []metric) {
	of := func(name, help string, by map[string]uint64) {
		all = append(all,
			counters(d.Name+name, help, "result", func(*scrape) map[string]uint64 { return by }))
	}
	of("_requests_total", "Requests received over "+d.Brings+", by the result of counting.",
		shown.Requests)
	if shown.Forwarded != nil {
		of("_forwarded_total", "Requests received over "+d.Brings+" to forward, by result.",
			shown.Forwarded)
	}
	for _, m := range doorMetrics {
		all = append(all, metric{describe(d.Name+"_"+m.name, m.help), func(_ *scrape, emit emitter) {
			emit.value(m.kind, m.of(shown))
		}})
	}
	return all
}
