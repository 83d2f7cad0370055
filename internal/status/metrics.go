package status

import (
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export"
)

// metrics are all metrics except those of receivers. docs/metrics.md describes them.
var metrics = []metric{
	counter("spans_received_total", "Spans that tracers handed over.",
		func(s *scrape) uint64 { return s.admitted.Received }),
	{describe("spans_aggregated_total", "Spans counted into a table.", "drainer"), emitAggregated},
	counters("spans_dropped_total", "Spans handed over and not counted, by reason.", "reason",
		func(s *scrape) map[string]uint64 { return s.admitted.Dropped }),
	counters("spans_collapsed_total", "Spans counted with a label over its budget replaced, by field.",
		"field", func(s *scrape) map[string]uint64 { return s.admitted.Collapsed }),
	counter("spans_late_total", "Spans that ended before the window and were raised into its oldest bucket.",
		func(s *scrape) uint64 { return s.late }),
	counter("spans_early_total", "Spans that claim to end in the future and were lowered into the bucket "+
		"of now.", func(s *scrape) uint64 { return s.early }),
	gauge("span_age_max_seconds", "Longest of those times since the start.",
		func(s *scrape) float64 { return s.agg.Ages.Highest }),
	perDestination(prometheus.CounterValue, "spans_flushed_total", "Spans in payloads that the destination "+
		"accepted.", func(_ *scrape, d *export.Stats) uint64 { return d.Flushed }),
	byReason("spans_unsent_total", "Spans in payloads that were given up, by reason.", "reason",
		func(d *export.Stats) map[export.Reason]uint64 { return d.Unsent }),
	perDestination(prometheus.GaugeValue, "spans_held", "Spans in open tables and in payloads not "+
		"delivered yet.", func(s *scrape, d *export.Stats) uint64 { return s.agg.Held + d.Held }),
	perDestination(prometheus.CounterValue, "spans_before_found_total", "Spans counted before a destination "+
		"was found that nobody had named; it is not sent them.",
		func(_ *scrape, d *export.Stats) uint64 { return d.BeforeFound }),
	counters("client_lost_spans_total", "Spans that tracers themselves could not send, as they report it, "+
		"by reason.", "reason", func(s *scrape) map[string]uint64 { return s.in.ClientLost }),

	ringGauge("ring_slots", "Size of a ring.", func(d *aggregate.DrainerStats) int { return d.Ring.Slots }),
	ringGauge("ring_used_slots", "Slots of a ring that are not drained yet.",
		func(d *aggregate.DrainerStats) int { return d.Ring.Used }),
	ringGauge("ring_high_water_slots", "Most slots of a ring ever in use at once.",
		func(d *aggregate.DrainerStats) int { return d.Ring.HighWater }),

	gauge("partitions", "Shares that the key space is cut into.",
		func(s *scrape) int { return s.agg.Partitions.Partitions }),
	gauge("spread_partitions", "Partitions that several drainers share.",
		func(s *scrape) int { return s.agg.Partitions.Spread }),
	counter("partition_moves_total", "Partitions that got another drainer to level the load.",
		func(s *scrape) uint64 { return s.agg.Partitions.Moves }),
	counter("partition_spreads_total", "Partitions that were spread over more drainers because they were "+
		"too much for one.", func(s *scrape) uint64 { return s.agg.Partitions.Spreads }),
	counter("partition_gathers_total", "Spread partitions that went back to one drainer.",
		func(s *scrape) uint64 { return s.agg.Partitions.Gathers }),
	gauge("drainer_load_ratio", "Spans offered to the busiest drainer over those to the idlest, in the "+
		"last interval of levelling.", func(s *scrape) float64 { return s.agg.Partitions.LoadRatio }),

	gauge("aggregates", "Keys in the current interval.", func(s *scrape) int { return s.agg.Aggregates }),
	gauge("origins", "Origins in the current interval.", func(s *scrape) int { return s.agg.Origins }),
	counters("keys_masked_total", "Keys that were counted with a mask in the place of a value, by field.",
		"field", func(s *scrape) map[string]uint64 { return s.agg.Masked }),
	gauge("sketch_bytes", "Memory that tables have taken for the bins of their sketches.",
		func(s *scrape) int64 { return int64(s.agg.SketchBytes) }),
	counter("spans_coarsened_total", "Times a span went into a higher bin than its own, for want of memory "+
		"for that bin.", func(s *scrape) uint64 { return s.agg.Coarsened }),

	gauge("connections", "Tracers connected.", func(s *scrape) int64 { return int64(s.in.Connections) }),
	counter("connections_total", "Connections accepted.",
		func(s *scrape) uint64 { return s.in.ConnectionsTotal }),
	counter("keys_decoded_total", "Keys that a connection met for the first time, or had no room to keep.",
		func(s *scrape) uint64 { return s.admitted.KeysDecoded }),
	counter("keys_uncached_total", "Keys that found no room in their connection's table.",
		func(s *scrape) uint64 { return s.admitted.KeysUncached }),
	counter("keys_unnumbered_total", "Definitions of keys with numbers that found no room, so that their "+
		"spans are counted without labels.", func(s *scrape) uint64 { return s.admitted.KeysUnnumbered }),
	counter("keys_normalised_total", "Keys with a label that was cut or rewritten as the agent does it.",
		func(s *scrape) uint64 { return s.admitted.KeysNormalised }),
	counter("reads_throttled_total", "Reads put off to hold a connection to its byte rate.",
		func(s *scrape) uint64 { return s.in.ReadsThrottled }),
	counter("large_frames_waited_total", "Frames over 64 KiB that waited for room among those of others.",
		func(s *scrape) uint64 { return s.in.FramesWaited }),
	counter("frames_total", "Frames read.", func(s *scrape) uint64 { return s.in.Frames }),
	counters("protocol_errors_total", "Connections closed on their tracer, by reason.", "reason",
		func(s *scrape) map[string]uint64 { return s.in.Faults }),

	counters("apm_stats_requests_total", "Requests of tracers with statistics of their own, by what became "+
		"of them.", "result", func(s *scrape) map[string]uint64 { return s.apm.Merges }),
	counter("apm_other_requests_total", "Requests of tracers to the agent that brought no traces.",
		func(s *scrape) uint64 { return s.apm.Other }),
	counter("apm_failed_requests_total", "Requests of tracers that the agent did not answer.",
		func(s *scrape) uint64 { return s.apm.Failed }),
	gauge("apm_drops_unsampled", "1 if traces that sampling threw away are counted and not forwarded just "+
		"now, else 0.", func(s *scrape) int { return oneIf(s.apm.DropsUnsampled) }),
	counter("apm_unsampled_traces_total", "Traces that were counted and not forwarded, because sampling "+
		"threw them away.", func(s *scrape) uint64 { return s.apm.UnsampledTraces }),
	counter("apm_unsampled_spans_total", "Spans of those traces.",
		func(s *scrape) uint64 { return s.apm.UnsampledSpans }),
	counter("apm_saved_bytes_total", "Bytes of those traces.",
		func(s *scrape) uint64 { return s.apm.SavedBytes }),

	counter("otlp_kept_traces_total", "Traces of OTLP of which --otlp-keep had something go on.",
		func(s *scrape) uint64 { return s.otlp.KeptTraces }),
	counter("otlp_kept_spans_total", "Spans that it had go on.",
		func(s *scrape) uint64 { return s.otlp.KeptSpans }),
	counter("otlp_gone_traces_total", "Traces of OTLP that were counted and went no further, by --otlp-keep.",
		func(s *scrape) uint64 { return s.otlp.GoneTraces }),
	counter("otlp_gone_spans_total", "Spans that were counted and went no further, by --otlp-keep.",
		func(s *scrape) uint64 { return s.otlp.GoneSpans }),
	counter("otlp_saved_bytes_total", "Bytes that went no further, by --otlp-keep.",
		func(s *scrape) uint64 { return s.otlp.SavedBytes }),

	byReason("payloads_total", "Outcomes of payloads, by result.", "result",
		func(d *export.Stats) map[export.Result]uint64 { return d.Payloads }),
	perDestination(prometheus.GaugeValue, "retry_queue_bytes", "Bytes of payloads that wait for the "+
		"destination.", func(_ *scrape, d *export.Stats) int { return d.QueueBytes }),
	perDestination(prometheus.GaugeValue, "retry_queue_limit_bytes", "What may wait, as --retry-bytes says.",
		func(_ *scrape, d *export.Stats) int { return d.QueueMaxBytes }),
	perDestination(prometheus.GaugeValue, "retry_oldest_seconds", "Age of the oldest payload without an "+
		"outcome, 0 where there is none.", func(_ *scrape,
		d *export.Stats,
	) float64 {
		return d.OldestAge.Seconds()
	}),
	perDestination(prometheus.GaugeValue, "retry_age_limit_seconds", "Age at which a payload that waits is "+
		"given up, as --retry-age says.", func(_ *scrape,
		d *export.Stats,
	) float64 {
		return d.MaxAge.Seconds()
	}),
	perKnownDestination("destination_reachable", "1 if the destination answered the last request, else 0.",
		func(d *export.Stats) bool { return d.Reachable }),
	perKnownDestination("destination_takes", "1 if the destination took the last payload that it was offered, or was "+
		"offered none, else 0.", func(d *export.Stats) bool { return d.IsAccepting }),

	perDestination(prometheus.GaugeValue, "running_totals", "Series of running totals that the destination "+
		"is sent.", func(_ *scrape, d *export.Stats) int { return d.Totals.Series }),
	perDestination(prometheus.CounterValue, "running_totals_ended_total",
		"Running totals that ended, because nothing was added to them or to make room.",
		func(_ *scrape, d *export.Stats) uint64 { return d.Totals.Ended }),
	perDestination(prometheus.CounterValue, "spans_overflowed_total", "Spans that found no room in a "+
		"running total of their own, and were counted in that of their resource.",
		func(_ *scrape, d *export.Stats) uint64 { return d.Totals.Overflowed }),
	gauge("prometheus_last_scrape_timestamp_seconds", "When somebody last scraped all statistics that "+
		"are kept for that, seconds since the Unix epoch; 0 before.",
		func(s *scrape) int64 { return lastScrape(s.sources.Prometheus) }),
	counters("exemplar_candidates_total", "Spans of forwarded traces that were slower than the exemplar of "+
		"their series, by whether there was room for them.", "result",
		func(s *scrape) map[string]uint64 { return s.sources.Exemplars.Counts().ByResult() }),

	gauge("memory_budget_bytes", "What the limits of the configuration may come to.",
		func(s *scrape) int64 { return s.budget }),
	gauge("memory_limit_bytes", "What the process may use by its control groups or GOMEMLIMIT; 0 where "+
		"nothing says so.", func(s *scrape) (bytes int64) {
		if s.limit.Known() {
			bytes = s.limit.Bytes
		}
		return bytes
	}),
	counter("http_refused_total", "Connections to the HTTP address that were closed because there were too "+
		"many.", func(s *scrape) uint64 { return s.refused() }),
	gauge("predecessors_died", "Daemons before this one at its socket that were killed.",
		func(s *scrape) int { return s.died() }),
	{
		describe("lost_to_kills_total", "Spans that daemons before this one held when they were killed, and "+
			"that nobody has any more; ambiguous: a destination may have them.", "door", "reason"),
		func(s *scrape, emit emitter) {
			for door, loss := range s.lostToKills().Receivers {
				emit.value(prometheus.CounterValue, float64(loss.Lost), door, "lost")
				emit.value(prometheus.CounterValue, float64(loss.Ambiguous), door, "ambiguous")
			}
		},
	},
	gauge("awaited_after_kills_spans", "Spans that clients had handed over to daemons that were killed, and "+
		"have not come back with yet.", func(s *scrape) uint64 { return s.lostToKills().Awaited }),
	counter("log_lines_lost_total", "Log lines that nobody read in time, or that could not be written.",
		func(s *scrape) uint64 { return s.logLinesLost() }),
	{
		describe("build_info", "Always 1; what was built.", "version", "goversion"),
		func(s *scrape, emit emitter) {
			emit.value(prometheus.GaugeValue, 1, s.version, runtime.Version())
		},
	},

	{
		describe("span_age_seconds", "Time from a span's end to its being counted, of one span in 1024."),
		func(s *scrape, emit emitter) {
			emit.histogram(export.Histogram{
				Bounds: s.agg.Ages.Bounds, Counts: s.agg.Ages.Counts,
				Sum: s.agg.Ages.Sum,
			})
		},
	},
	{describe("payload_bytes", "Sizes of encoded payloads.", "destination"), func(s *scrape, emit emitter) {
		for i := range s.out {
			emit.histogram(s.out[i].PayloadBytes, s.out[i].Name())
		}
	}},
	{
		describe("flush_seconds", "Time to merge and encode one sealed cycle for all destinations."),
		func(s *scrape, emit emitter) {
			emit.histogram(s.flushSeconds)
		},
	},
}

// emitAggregated emits the counts of the drainers, and that of merged groups, which have no
// drainer.
func emitAggregated(s *scrape, emit emitter) {
	for i := range s.agg.Drainers {
		emit.value(prometheus.CounterValue, float64(s.agg.Drainers[i].Aggregated), strconv.Itoa(i))
	}
	emit.value(prometheus.CounterValue, float64(s.agg.Merged), "merged")
}

// all returns the metrics of a snapshot, including those of each receiver.
func (c *collector) all(now *snapshot) []metric {
	all := slices.Clone(metrics)
	for i := range c.sources.Receivers {
		all = append(all, c.sources.Receivers[i].metrics(&now.receivers[i])...)
	}
	return all
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	now := c.sources.snapshot()
	for _, m := range c.all(&now) {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := &scrape{c.sources.snapshot(), c}
	for _, m := range c.all(&s.snapshot) {
		m.emit(s, emitter{m.desc, to})
	}
}
