package status

import (
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/registry"
)

// metrics are all metrics except those of receivers. docs/metrics.md explains each.
var daemonMetrics = []metric{
	counter("spans_received_total", "Spans received.",
		func(s *scrape) uint64 { return s.admit.Received }),
	{describe("spans_aggregated_total",
		"Spans counted, by drainer; merged for statistics that tracers computed.", "drainer"), emitAggregated},
	labeledCounter("spans_dropped_total", "Spans received but not counted, by reason.", "reason",
		func(s *scrape) map[string]uint64 { return s.admit.Dropped }),
	labeledCounter("spans_collapsed_total",
		"Spans counted with a label replaced because its budget is exhausted, by field.",
		"field", func(s *scrape) map[string]uint64 { return s.admit.Collapsed }),
	counter("spans_renamed_total", "Spans counted under a name that OpenTelemetry's semantic conventions define, instead of the sent one.",
		func(s *scrape) uint64 { return s.admit.Renamed }),
	counter("spans_late_total", "Spans that ended before the oldest open bucket, counted in that bucket.",
		func(s *scrape) uint64 { return s.lateSpans }),
	counter("spans_early_total", "Spans that end in the future, counted in the current bucket.",
		func(s *scrape) uint64 { return s.earlySpans }),
	gauge("span_age_max_seconds", "Longest sampled time from the end of a span until it was counted.",
		func(s *scrape) float64 { return s.aggregate.Ages.Highest }),
	perDestination(prometheus.CounterValue, "spans_flushed_total", "Spans in payloads that the destination accepted.",
		func(_ *scrape, d *export.Stats) uint64 { return d.Flushed }),
	perDestinationBy("reason", "spans_unsent_total", "Spans in abandoned payloads, by reason.",
		func(d *export.Stats) map[export.Reason]uint64 { return d.Unsent }),
	perDestination(prometheus.GaugeValue, "spans_pending", "Spans counted that are neither delivered to the destination nor abandoned yet.",
		func(s *scrape, d *export.Stats) uint64 { return s.aggregate.Pending + d.Pending }),
	perDestination(prometheus.CounterValue, "spans_before_discovery_total",
		"Spans of intervals that ended before the agent was auto-discovered.",
		func(_ *scrape, d *export.Stats) uint64 { return d.BeforeDiscovery }),
	counter("values_received_total", "Values of measured attributes received with spans.",
		func(s *scrape) uint64 { return s.admit.ValuesReceived }),
	counter("values_aggregated_total", "Values of measured attributes counted.",
		func(s *scrape) uint64 { return s.aggregate.Values() }),
	labeledCounter("values_dropped_total", "Values of measured attributes dropped with their spans, by reason.", "reason",
		func(s *scrape) map[string]uint64 { return s.admit.ValuesDropped }),
	labeledCounter("values_refused_total", "Values of measured attributes that can't be counted, by reason.", "reason",
		func(s *scrape) map[string]uint64 { return s.otlp.RefusedValues }),
	perDestination(prometheus.CounterValue, "values_flushed_total",
		"Values of measured attributes in payloads that the destination accepted.",
		func(_ *scrape, d *export.Stats) uint64 { return d.Values.Flushed }),
	perDestinationBy("reason", "values_unsent_total", "Values of measured attributes in abandoned payloads, by reason.",
		func(d *export.Stats) map[export.Reason]uint64 { return d.Values.Unsent }),
	perDestination(prometheus.GaugeValue, "values_pending",
		"Values of measured attributes counted that are neither delivered to the destination nor abandoned yet.",
		func(s *scrape, d *export.Stats) uint64 {
			if !d.Values.Expected {
				return 0
			}
			return s.aggregate.PendingValues + d.Values.Pending
		}),
	labeledCounter("client_lost_spans_total", "Spans that native clients report as lost, by reason.", "reason",
		func(s *scrape) map[string]uint64 { return s.ingest.ClientLost }),

	ringGauge("ring_slots", "Size of a ring in slots.",
		func(d *aggregate.DrainerStats) int { return d.Ring.Slots }),
	ringGauge("ring_used_slots", "Slots of a ring that are in use.",
		func(d *aggregate.DrainerStats) int { return d.Ring.Used }),
	ringGauge("ring_high_water_slots", "Highest number of slots of a ring ever in use.",
		func(d *aggregate.DrainerStats) int { return d.Ring.HighWater }),

	gauge("partitions", "Partitions of the key space.",
		func(s *scrape) int { return s.aggregate.Partitions.Partitions }),
	gauge("split_partitions", "Partitions that several drainers share.",
		func(s *scrape) int { return s.aggregate.Partitions.Split }),
	counter("partition_moves_total", "Partitions moved to another drainer to balance the load.",
		func(s *scrape) uint64 { return s.aggregate.Partitions.Moves }),
	counter("partition_splits_total", "Partitions split over more drainers.",
		func(s *scrape) uint64 { return s.aggregate.Partitions.Splits }),
	counter("partition_merges_total", "Split partitions returned to one drainer.",
		func(s *scrape) uint64 { return s.aggregate.Partitions.Merges }),
	gauge("drainer_load_ratio", "Spans routed to the busiest drainer, divided by those routed to the least busy one; sampled.",
		func(s *scrape) float64 { return s.aggregate.Partitions.LoadRatio }),

	gauge("aggregates", "Keys in the current interval.", func(s *scrape) int { return s.aggregate.Aggregates }),
	gauge("origins", "Origins in the current interval.", func(s *scrape) int { return s.aggregate.Origins }),
	labeledCounter("keys_masked_total", "Keys with identifiers replaced by placeholders, by field.",
		"field", func(s *scrape) map[string]uint64 { return s.aggregate.Masked }),
	{
		describe("label_values_wanted",
			"Estimated distinct values of a label that exceeded its budget in the last interval, by service; absent otherwise.",
			"service", "label"),
		perLabelOverBudget(func(l *registry.LabelOverflow) int { return l.Wanted }),
	},
	{
		describe("label_budget",
			"Budget, in distinct values, of a label that exceeded it in the last interval, by service; absent otherwise.",
			"service", "label"),
		perLabelOverBudget(func(l *registry.LabelOverflow) int { return l.Budget }),
	},
	gauge("aggregates_wanted", "Estimated keys that the last interval would have had without budgets, 0 if none was exceeded.",
		func(s *scrape) int {
			if overflow := s.lastOverflow(); overflow != nil {
				return overflow.Keys
			}
			return 0
		}),
	gauge("sketch_bytes", "Memory used for sketch bins.",
		func(s *scrape) int64 { return int64(s.aggregate.SketchBytes) }),
	counter("spans_coarsened_total", "Spans counted with a higher duration, because the memory for sketch bins is exhausted.",
		func(s *scrape) uint64 { return s.aggregate.Coarsened }),

	gauge("connections", "Connected native clients.",
		func(s *scrape) int64 { return int64(s.ingest.Connections) }),
	counter("connections_total", "Accepted connections of native clients.",
		func(s *scrape) uint64 { return s.ingest.ConnectionsTotal }),
	counter("keys_decoded_total", "Keys decoded because their connection did not know them.",
		func(s *scrape) uint64 { return s.admit.KeysDecoded }),
	counter("keys_uncached_total", "Keys that do not fit in the memory for the keys of their connection, and are decoded at each use.",
		func(s *scrape) uint64 { return s.admit.KeysUncached }),
	counter("key_definitions_rejected_total", "Definitions of numbered keys that exceeded a limit; spans with these keys are counted without labels.",
		func(s *scrape) uint64 { return s.admit.KeysUnnumbered }),
	counter("keys_normalized_total", "Keys with a label that was cut or rewritten.",
		func(s *scrape) uint64 { return s.admit.KeysNormalized }),
	counter("reads_throttled_total", "Reads delayed to limit the byte rate of a connection.",
		func(s *scrape) uint64 { return s.ingest.ReadsThrottled }),
	counter("large_frames_waited_total", "Frames over 64 KiB that waited for memory.",
		func(s *scrape) uint64 { return s.ingest.FramesWaited }),
	counter("frames_total", "Frames read from native clients.",
		func(s *scrape) uint64 { return s.ingest.Frames }),
	labeledCounter("protocol_errors_total",
		"Connections of native clients closed by the daemon, by reason.", "reason",
		func(s *scrape) map[string]uint64 { return s.ingest.Faults }),

	counter("slo_spans_not_counted_total",
		"Spans in statistics of Datadog tracers that a service level objective with a threshold could not count.",
		func(s *scrape) uint64 { return s.admit.WithoutObjective }),
	labeledCounter("apm_stats_requests_total", "Requests with statistics that Datadog tracers computed, by result.", "result",
		func(s *scrape) map[string]uint64 { return s.apm.Merges }),
	counter("apm_other_requests_total", "Requests of Datadog tracers without traces or statistics.",
		func(s *scrape) uint64 { return s.apm.Other }),
	counter("apm_failed_requests_total", "Requests of Datadog tracers without a response from the agent.",
		func(s *scrape) uint64 { return s.apm.Failed }),
	gauge("apm_drops_unsampled", "1 if unsampled traces are currently not forwarded to the agent, otherwise 0.",
		func(s *scrape) float64 { return oneIf(s.apm.DropsUnsampled) }),
	counter("apm_unsampled_traces_total", "Unsampled traces that were counted and not forwarded.",
		func(s *scrape) uint64 { return s.apm.UnsampledTraces }),
	counter("apm_unsampled_spans_total", "Spans of unsampled traces that were counted and not forwarded.",
		func(s *scrape) uint64 { return s.apm.UnsampledSpans }),
	counter("apm_saved_bytes_total", "Bytes of unsampled traces that were counted and not forwarded.",
		func(s *scrape) uint64 { return s.apm.SavedBytes }),

	counter("otlp_sampled_traces_total", "OTLP traces forwarded by --otlp-keep, completely or partly.",
		func(s *scrape) uint64 { return s.otlp.SampledTraces }),
	counter("otlp_sampled_spans_total", "OTLP spans forwarded by --otlp-keep.",
		func(s *scrape) uint64 { return s.otlp.SampledSpans }),
	counter("otlp_sampled_out_traces_total", "OTLP traces counted and not forwarded because of --otlp-keep.",
		func(s *scrape) uint64 { return s.otlp.SampledOutTraces }),
	counter("otlp_sampled_out_spans_total", "OTLP spans counted and not forwarded because of --otlp-keep.",
		func(s *scrape) uint64 { return s.otlp.SampledOutSpans }),
	counter("otlp_saved_bytes_total", "Bytes not forwarded because of --otlp-keep.",
		func(s *scrape) uint64 { return s.otlp.SavedBytes }),

	perDestinationBy("result", "payloads_total", "Payloads by result; retried counts failed attempts, all other results are final.",
		func(d *export.Stats) map[export.Result]uint64 { return d.Payloads }),
	perDestination(prometheus.GaugeValue, "retry_queue_bytes", "Bytes of queued payloads.",
		func(_ *scrape, d *export.Stats) int { return d.QueueBytes }),
	perDestination(prometheus.GaugeValue, "retry_queue_limit_bytes",
		"Maximum bytes of queued payloads: --retry-bytes.",
		func(_ *scrape, d *export.Stats) int { return d.QueueMaxBytes }),
	perDestination(prometheus.GaugeValue, "retry_oldest_seconds", "Age of the oldest payload that is neither delivered nor abandoned yet, 0 if there is none.",
		func(_ *scrape,
			d *export.Stats,
		) float64 {
			return d.OldestAge.Seconds()
		}),
	perDestination(prometheus.GaugeValue, "retry_age_limit_seconds", "Age at which a queued payload is dropped: --retry-age.",
		func(_ *scrape,
			d *export.Stats,
		) float64 {
			return d.MaxAge.Seconds()
		}),
	perKnownDestination("destination_reachable", "1 if the destination responded to the last request, otherwise 0.",
		func(d *export.Stats) bool { return d.Reachable }),
	perKnownDestination("destination_accepting", "1 if the destination accepted the last payload, or has received none yet, otherwise 0.",
		func(d *export.Stats) bool { return d.IsAccepting }),

	perDestination(prometheus.GaugeValue, "cumulative_series", "Cumulative series in memory.",
		func(_ *scrape, d *export.Stats) int { return d.Totals.Series }),
	perDestination(prometheus.CounterValue, "cumulative_series_ended_total",
		"Cumulative series that ended after an hour without spans, or were evicted by new ones.",
		func(_ *scrape, d *export.Stats) uint64 { return d.Totals.Ended }),
	perDestination(prometheus.CounterValue, "spans_overflowed_total",
		"Spans, and values of measures, counted in the overflow series of their resource.",
		func(_ *scrape, d *export.Stats) uint64 { return d.Totals.Overflowed }),
	perDestination(prometheus.GaugeValue, "service_graph_edges", "Edges of the service graph, 0 without --service-graph.",
		func(_ *scrape, d *export.Stats) int { return d.Totals.Edges }),
	perDestination(prometheus.CounterValue, "service_graph_spans_overflowed_total",
		"Spans counted in the overflow edge of the service graph, because it has reached --service-graph-edges.",
		func(_ *scrape, d *export.Stats) uint64 { return d.Totals.EdgesOverflowed }),
	gauge("prometheus_last_scrape_timestamp_seconds",
		"Unix time of the last complete scrape of request metrics, 0 before the first.",
		func(s *scrape) int64 { return lastScrape(s.sources.Prometheus) }),
	labeledCounter("exemplar_candidates_total",
		"Forwarded spans slower than the exemplar of their series, by result.", "result",
		func(s *scrape) map[string]uint64 { return s.sources.Exemplars.Counts().ByResult() }),

	gauge("memory_budget_bytes", "Maximum memory use, if every configured limit is reached.",
		func(s *scrape) int64 { return s.maxMemory }),
	gauge("memory_limit_bytes", "Memory limit from control groups or GOMEMLIMIT, 0 without one.",
		func(s *scrape) (bytes int64) {
			if s.limit.Known() {
				bytes = s.limit.Bytes
			}
			return bytes
		}),
	counter("http_evicted_connections_total", "Connections to --http-addr evicted because too many were open.",
		func(s *scrape) uint64 { return s.httpEvicted() }),
	gauge("crashed_predecessors", "Previous daemons at this socket that crashed or were killed.",
		func(s *scrape) int { return s.crashes() }),
	{
		describe("spans_lost_to_crashes_total",
			"Spans that crashed daemons had not delivered, by receiver; ambiguous if a destination may have received them.", "receiver", "reason"),
		func(s *scrape, emit emitter) {
			for receiver, loss := range s.crashLosses().Receivers {
				emit.value(prometheus.CounterValue, float64(loss.Lost), receiver, "lost")
				emit.value(prometheus.CounterValue, float64(loss.Ambiguous), receiver, "ambiguous")
			}
		},
	},
	{
		describe("values_lost_to_crashes_total",
			"Values of measured attributes that crashed daemons had not delivered; ambiguous if a destination may have received them.", "reason"),
		func(s *scrape, emit emitter) {
			loss := s.crashLosses().Values
			emit.value(prometheus.CounterValue, float64(loss.Lost), "lost")
			emit.value(prometheus.CounterValue, float64(loss.Ambiguous), "ambiguous")
		},
	},
	gauge("spans_awaiting_replay", "Spans that native clients are expected to resend after a crash.",
		func(s *scrape) uint64 { return s.crashLosses().Awaited }),
	counter("log_lines_lost_total", "Log lines dropped because their reader was too slow or a write failed.",
		func(s *scrape) uint64 { return s.logLinesLost() }),
	{
		describe("build_info", "Version of the program; always 1.", "version", "goversion"),
		func(s *scrape, emit emitter) {
			emit.value(prometheus.GaugeValue, 1, s.version, runtime.Version())
		},
	},

	{
		describe("span_age_seconds", "Time from the end of a span until it was counted, for one span in 1024."),
		func(s *scrape, emit emitter) {
			emit.histogram(export.Histogram{
				Bounds: s.aggregate.Ages.Bounds, Counts: s.aggregate.Ages.Counts,
				Sum: s.aggregate.Ages.Sum,
			})
		},
	},
	{describe("payload_bytes", "Sizes of encoded payloads.", "destination"), func(s *scrape, emit emitter) {
		for i := range s.destinations {
			emit.histogram(s.destinations[i].PayloadBytes, s.destinations[i].Name())
		}
	}},
	{
		describe("flush_seconds", "Time to merge and encode one sealed cycle for all destinations."),
		func(s *scrape, emit emitter) {
			emit.histogram(s.flushSeconds)
		},
	},
}

// emitAggregated emits the number of spans that each drainer, a goroutine, has aggregated. Spans in
// statistics that tracers have computed are aggregated elsewhere, and have the label value "merged"
// instead of the number of a drainer.
func emitAggregated(s *scrape, emit emitter) {
	for i := range s.aggregate.Drainers {
		emit.value(prometheus.CounterValue, float64(s.aggregate.Drainers[i].Aggregated), strconv.Itoa(i))
	}
	emit.value(prometheus.CounterValue, float64(s.aggregate.Merged), "merged")
}

// lastOverflow returns the last interval if a label exceeded its budget in it, and nil otherwise.
func (s *scrape) lastOverflow() *registry.Overflow {
	overflow := s.aggregate.Overflow
	if overflow == nil || !overflow.IsLast {
		return nil
	}
	return overflow
}

// perLabelOverBudget returns a function that emits a gauge with the labels service and label for each label
// that exceeded its budget in the last interval. value computes the value of the gauge.
func perLabelOverBudget(value func(*registry.LabelOverflow) int) func(*scrape, emitter) {
	return func(s *scrape, emit emitter) {
		overflow := s.lastOverflow()
		if overflow == nil {
			return
		}
		for i := range overflow.Labels {
			l := &overflow.Labels[i]
			emit.value(prometheus.GaugeValue, float64(value(l)), l.Service, l.Label)
		}
	}
}

// allMetrics returns the metrics of the daemon and of each receiver. The values of the receivers' metrics
// are from s.
func (c *collector) allMetrics(s *snapshot) []metric {
	all := slices.Clone(daemonMetrics)
	for i := range c.sources.Receivers {
		receiver := &c.sources.Receivers[i]
		all = append(all, receiver.metrics(&s.receivers[i])...)
	}
	return all
}

// Describe implements prometheus.Collector. It sends no descriptions, because the set of metrics is
// not known before the daemon starts. The registry checks the metrics at each scrape instead.
func (*collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It reads the statistics of all components once, and sends
// all metrics.
func (c *collector) Collect(target chan<- prometheus.Metric) {
	c.emitAll(c.sources.snapshot(), target)
}

// emitAll sends all metrics with the given statistics.
func (c *collector) emitAll(statistics snapshot, target chan<- prometheus.Metric) {
	s := &scrape{snapshot: statistics, collector: c}
	for _, m := range c.allMetrics(&s.snapshot) {
		m.emitValues(s, emitter{desc: m.desc, target: target})
	}
}
