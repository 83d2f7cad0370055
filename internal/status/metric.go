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

// collector converts the statistics of all components to metrics at each scrape.
type collector struct {
	sources      Sources
	version      string
	maxMemory    int64 // maximum memory of the configuration, in bytes
	limit        memory.Limit
	httpEvicted  func() uint64 // evicted connections to --http-addr
	logLinesLost func() uint64
	crashes      func() int // crashed predecessors
	crashLosses  func() recovery.Losses
}

// scrape contains the values from which the metrics of one scrape are computed.
type scrape struct {
	snapshot
	*collector
}

// metric is a metric with the function that emits its values.
type metric struct {
	desc       *prometheus.Desc
	emitValues func(s *scrape, emit emitter)
}

// emitter emits values of one metric.
type emitter struct {
	desc   *prometheus.Desc
	target chan<- prometheus.Metric
}

func (e emitter) value(kind prometheus.ValueType, value float64, labels ...string) {
	e.target <- prometheus.MustNewConstMetric(e.desc, kind, value, labels...)
}

// histogram emits a histogram as a Prometheus metric. h has one count per bucket, and Prometheus needs
// cumulative counts, so it adds up the counts of all buckets up to each bound.
func (e emitter) histogram(h export.Histogram, labels ...string) {
	countUpTo := map[float64]uint64{}
	count := uint64(0)
	for i, bound := range h.Bounds {
		count += h.Counts[i]
		countUpTo[bound] = count
	}
	e.target <- prometheus.MustNewConstHistogram(e.desc, h.Count(), h.Sum, countUpTo, labels...)
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("spanstatsd_"+name, help, labels, nil)
}

type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

func counter[N number](name, help string, value func(*scrape) N) metric {
	return metric{describe(name, help), func(s *scrape, emit emitter) {
		emit.value(prometheus.CounterValue, float64(value(s)))
	}}
}

func gauge[N number](name, help string, value func(*scrape) N) metric {
	return metric{describe(name, help), func(s *scrape, emit emitter) {
		emit.value(prometheus.GaugeValue, float64(value(s)))
	}}
}

// labeledCounter returns a counter with one label, for example "reason". countsOf returns a map from each value of the
// label to its count.
func labeledCounter[K ~string](name, help, label string, countsOf func(*scrape) map[K]uint64) metric {
	emitValues := func(s *scrape, emit emitter) {
		for labelValue, count := range countsOf(s) {
			emit.value(prometheus.CounterValue, float64(count), string(labelValue))
		}
	}
	return metric{describe(name, help, label), emitValues}
}

// ringGauge returns a gauge with one value per ring.
func ringGauge(name, help string, value func(*aggregate.DrainerStats) int) metric {
	return metric{describe(name, help, "ring"), func(s *scrape, emit emitter) {
		for i := range s.aggregate.Drainers {
			emit.value(prometheus.GaugeValue, float64(value(&s.aggregate.Drainers[i])), strconv.Itoa(i))
		}
	}}
}

// perDestination returns a metric with one value for each destination, and the label "destination". value
// returns the value for a destination.
func perDestination[N number](kind prometheus.ValueType, name, help string,
	value func(*scrape, *export.Stats) N,
) metric {
	emitValues := func(s *scrape, emit emitter) {
		for i := range s.destinations {
			d := &s.destinations[i]
			number := float64(value(s, &d.Stats))
			emit.value(kind, number, d.Name())
		}
	}
	return metric{describe(name, help, "destination"), emitValues}
}

// perKnownDestination returns a gauge with one value for each destination: 1 if isTrue returns true,
// and otherwise 0. It omits an agent that has not been discovered yet, because its state is unknown
// and must not cause an alert.
func perKnownDestination(name, help string, isTrue func(*export.Stats) bool) metric {
	emitValues := func(s *scrape, emit emitter) {
		for i := range s.destinations {
			d := &s.destinations[i]
			if d.IsDiscovering {
				continue
			}
			emit.value(prometheus.GaugeValue, oneIf(isTrue(&d.Stats)), d.Name())
		}
	}
	return metric{describe(name, help, "destination"), emitValues}
}

// perDestinationBy returns a counter with the label "destination" and a second label, for example "reason". countsOf
// returns the counts of a destination: a map from each value of the second label to its count.
func perDestinationBy[K ~string](secondLabel, name, help string, countsOf func(*export.Stats) map[K]uint64) metric {
	emitValues := func(s *scrape, emit emitter) {
		for i := range s.destinations {
			destination := &s.destinations[i]
			for labelValue, count := range countsOf(&destination.Stats) {
				emit.value(prometheus.CounterValue, float64(count), destination.Name(), string(labelValue))
			}
		}
	}
	return metric{describe(name, help, "destination", secondLabel), emitValues}
}

// oneIf returns 1 for true and 0 for false.
func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// receiverMetrics are the metrics that each receiver has, with the prefix of its flags.
var receiverMetrics = []struct {
	name, help string
	kind       prometheus.ValueType
	value      func(s *receiver.Status) float64
}{
	{
		"connections", "Open connections.",
		prometheus.GaugeValue, func(s *receiver.Status) float64 { return float64(s.Connections) },
	},
	{
		"refused_connections_total", "Connections rejected because of the limit in total or for one process.",
		prometheus.CounterValue, func(s *receiver.Status) float64 { return float64(s.Refused) },
	},
	{
		"waited_requests_total", "Requests that waited for an unreachable destination.",
		prometheus.CounterValue, func(s *receiver.Status) float64 { return float64(s.Waited) },
	},
	{
		"waiting_requests", "Requests waiting for an unreachable destination.",
		prometheus.GaugeValue, func(s *receiver.Status) float64 { return float64(s.Waiting) },
	},
	{
		"dedup_evictions_total", "Hashes of counted requests evicted before ten minutes; a retry of such a request is counted twice.",
		prometheus.CounterValue, func(s *receiver.Status) float64 { return float64(s.DedupEvicted) },
	},
	{
		"parsed_bytes_total", "Bytes of parsed requests.",
		prometheus.CounterValue, func(s *receiver.Status) float64 { return float64(s.Bytes) },
	},
	{
		"origins", "Origins kept in memory between requests.",
		prometheus.GaugeValue, func(s *receiver.Status) float64 { return float64(s.Origins) },
	},
	{
		"buffered_bytes", "Bytes of buffered requests.",
		prometheus.GaugeValue, func(s *receiver.Status) float64 { return float64(s.BufferedBytes) },
	},
}

// metrics returns the metrics of an HTTP receiver with the values in stats. The names of the metrics
// begin with the name of the receiver, for example otlp_requests_total.
func (r *ReceiverSource) metrics(stats *receiver.Status) (all []metric) {
	received := r.requestCounter("requests_total",
		"Requests received over "+r.Receives+", by the result of counting.", stats.Requests)
	all = append(all, received)
	hasUpstream := stats.Forwarded != nil
	if hasUpstream {
		forwarded := r.requestCounter("forwarded_total",
			"Requests received over "+r.Receives+", by the result of forwarding.", stats.Forwarded)
		all = append(all, forwarded)
	}
	for _, m := range receiverMetrics {
		emitValue := func(_ *scrape, emit emitter) { emit.value(m.kind, m.value(stats)) }
		all = append(all, metric{describe(r.Name+"_"+m.name, m.help), emitValue})
	}
	return all
}

// requestCounter returns a counter of requests with the given counts, by the value of its label "result".
func (r *ReceiverSource) requestCounter(name, help string, byResult map[string]uint64) metric {
	return labeledCounter(r.Name+"_"+name, help, "result", func(*scrape) map[string]uint64 { return byResult })
}
