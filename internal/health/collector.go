package health

import (
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/apm"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
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

// all is every metric that metric made.
var all []*prometheus.Desc

// metric describes one of ours.
func metric(name, help string, labels ...string) *prometheus.Desc {
	desc := prometheus.NewDesc("spanstatsd_"+name, help, labels, nil)
	all = append(all, desc)
	return desc
}

var (
	spansReceived   = metric("spans_received_total", "Spans that tracers handed over.")
	spansAggregated = metric("spans_aggregated_total", "Spans counted into a table.", "drainer")
	spansDropped    = metric("spans_dropped_total", "Spans handed over and not counted, by reason.", "reason")
	spansCollapsed  = metric("spans_collapsed_total", "Spans counted with a label over its budget replaced, by field.", "field")
	spansLate       = metric("spans_late_total", "Spans that ended before the window and were raised into its oldest bucket.")
	spansEarly      = metric("spans_early_total", "Spans that claim to end in the future and were lowered into the bucket of now.")
	spanAge         = metric("span_age_seconds", "Time from a span's end to its being counted, of one span in 1024.")
	spanAgeMax      = metric("span_age_max_seconds", "Longest of those times since the start.")
	spansFlushed    = metric("spans_flushed_total", "Spans in payloads that the agent accepted.")
	spansUnsent     = metric("spans_unsent_total", "Spans in payloads that were given up, by reason.", "reason")
	spansHeld       = metric("spans_held", "Spans in open tables and in payloads not delivered yet.")
	clientLost      = metric("client_lost_spans_total", "Spans that tracers themselves could not send, as they report it, by reason.", "reason")

	ringSlots     = metric("ring_slots", "Size of a ring.", "ring")
	ringUsed      = metric("ring_used_slots", "Slots of a ring that are not drained yet.", "ring")
	ringHighWater = metric("ring_high_water_slots", "Most slots of a ring ever in use at once.", "ring")

	partitions       = metric("partitions", "Shares that the key space is cut into.")
	spreadPartitions = metric("spread_partitions", "Partitions that several drainers share.")
	partitionMoves   = metric("partition_moves_total", "Partitions that got another drainer to level the load.")
	partitionSpreads = metric("partition_spreads_total", "Partitions that were spread over more drainers because they were too much for one.")
	partitionGathers = metric("partition_gathers_total", "Spread partitions that went back to one drainer.")
	drainerLoadRatio = metric("drainer_load_ratio", "Spans offered to the busiest drainer over those to the idlest, in the last interval of levelling.")

	aggregates = metric("aggregates", "Keys in the current interval.")
	origins    = metric("origins", "Origins in the current interval.")

	sketchBytes    = metric("sketch_bytes", "Memory that tables have taken for the bins of their sketches.")
	spansCoarsened = metric("spans_coarsened_total", "Times a span went into a higher bin than its own, for want of memory for that bin.")

	connections      = metric("connections", "Tracers connected.")
	connectionsTotal = metric("connections_total", "Connections accepted.")
	keysDecoded      = metric("keys_decoded_total", "Keys that a connection met for the first time, or had no room to remember.")
	keysUncached     = metric("keys_uncached_total", "Keys that found no room in their connection's table.")
	keysNormalised   = metric("keys_normalised_total", "Keys with a label that was cut or rewritten as the agent does it.")
	readsThrottled   = metric("reads_throttled_total", "Reads put off to hold a connection to its byte rate.")
	framesWaited     = metric("large_frames_waited_total", "Frames over 64 KiB that waited for room among those of others.")
	framesTotal      = metric("frames_total", "Frames read.")
	protocolErrors   = metric("protocol_errors_total", "Connections closed on their tracer, by reason.", "reason")

	apmRequests = metric("apm_requests_total", "Requests of tracers with traces, by what became of their count.", "result")
	apmStats    = metric("apm_stats_requests_total", "Requests of tracers with statistics of their own, by what became of them.", "result")
	apmCrowd    = metric("apm_connections", "Connections of tracers to the agent's API.")
	apmRefused  = metric("apm_refused_connections_total", "Connections to the agent's API that were refused because there were too many.")
	apmOther    = metric("apm_other_requests_total", "Requests of tracers to the agent that brought no traces.")
	apmFailed   = metric("apm_failed_requests_total", "Requests of tracers that the agent did not answer.")
	apmWaited   = metric("apm_waited_requests_total", "Requests of tracers that waited for an agent that was away.")
	apmWaiting  = metric("apm_waiting_requests", "Requests of tracers that wait for the agent.")
	apmBytes    = metric("apm_walked_bytes_total", "Bytes of traces that were walked to be counted.")
	apmTraces   = metric("apm_unsampled_traces_total", "Traces that were counted and not forwarded, because sampling threw them away.")
	apmSpans    = metric("apm_unsampled_spans_total", "Spans of those traces.")
	apmSaved    = metric("apm_saved_bytes_total", "Bytes of those traces.")
	apmOrigins  = metric("apm_origins", "Origins of traces that are remembered.")
	apmBuffered = metric("apm_buffered_bytes", "Bytes of requests that are held while they are counted and forwarded.")

	payloadsTotal   = metric("payloads_total", "Outcomes of payloads, by result.", "result")
	payloadBytes    = metric("payload_bytes", "Sizes of encoded payloads.")
	flushSeconds    = metric("flush_seconds", "Time to merge and encode one sealed cycle.")
	retryQueueBytes = metric("retry_queue_bytes", "Bytes of payloads not delivered yet.")

	agentReachable = metric("agent_reachable", "1 if the agent answered the last request, else 0.")

	memoryBudget = metric("memory_budget_bytes", "What the limits of the configuration may come to.")
	memoryLimit  = metric("memory_limit_bytes", "What the process may use by its control groups or GOMEMLIMIT; 0 where nothing says so.")

	httpRefused = metric("http_refused_total", "Connections to the HTTP address that were closed because there were too many.")

	buildInfo = metric("build_info", "Always 1; what was built.", "version", "goversion")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range all {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	e := emitter{to}
	l := c.sources.look()
	e.flush(l.out)
	e.aggregate(l.agg)
	e.ingest(l.in)
	e.apm(c.sources.APM)
	e.gauge(spansHeld, l.agg.Held+l.out.Held)
	e.gauge(memoryBudget, uint64(c.budget))
	if c.limit.Known() {
		e.gauge(memoryLimit, uint64(c.limit.Bytes))
	} else {
		e.gauge(memoryLimit, 0)
	}
	e.counter(httpRefused, c.refused())
	e.gauge(buildInfo, 1, c.version, runtime.Version())
}

// emitter writes metrics for one scrape.
type emitter struct{ to chan<- prometheus.Metric }

func (e emitter) counter(desc *prometheus.Desc, value uint64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
}

func (e emitter) gauge(desc *prometheus.Desc, value uint64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
}

func (e emitter) seconds(desc *prometheus.Desc, value float64) {
	e.to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
}

func (e emitter) counters(desc *prometheus.Desc, values map[string]uint64) {
	for label, value := range values {
		e.counter(desc, value, label)
	}
}

func (e emitter) ingest(s ingest.Stats) {
	e.counters(spansDropped, s.Dropped)
	e.counters(spansCollapsed, s.Collapsed)
	e.counters(clientLost, s.ClientLost)
	e.counters(protocolErrors, s.Faults)
	e.gauge(connections, uint64(s.Connections))
	e.counter(connectionsTotal, s.ConnectionsTotal)
	e.counter(framesTotal, s.Frames)
	e.counter(keysDecoded, s.KeysDecoded)
	e.counter(keysUncached, s.KeysUncached)
	e.counter(keysNormalised, s.KeysNormalised)
	e.counter(readsThrottled, s.ReadsThrottled)
	e.counter(framesWaited, s.FramesWaited)
	e.counter(spansReceived, s.Received)
}

func (e emitter) apm(server *apm.Server) {
	s := apm.NoStats()
	if server != nil {
		s = server.Stats()
	}
	e.counters(apmRequests, s.Requests)
	e.counters(apmStats, s.Merges)
	e.gauge(apmCrowd, uint64(s.Connections))
	e.counter(apmRefused, s.Refused)
	e.counter(apmOther, s.Other)
	e.counter(apmFailed, s.Failed)
	e.counter(apmWaited, s.Waited)
	e.gauge(apmWaiting, uint64(s.Waiting))
	e.counter(apmBytes, s.Bytes)
	e.counter(apmTraces, s.UnsampledTraces)
	e.counter(apmSpans, s.UnsampledSpans)
	e.counter(apmSaved, s.SavedBytes)
	e.gauge(apmOrigins, uint64(s.Origins))
	e.gauge(apmBuffered, uint64(s.BufferedBytes))
}

func (e emitter) aggregate(s aggregate.Stats) {
	var late, early uint64
	for i, d := range s.Drainers {
		number := strconv.Itoa(i)
		e.counter(spansAggregated, d.Aggregated, number)
		e.gauge(ringSlots, uint64(d.Ring.Slots), number)
		e.gauge(ringUsed, uint64(d.Ring.Used), number)
		e.gauge(ringHighWater, uint64(d.Ring.HighWater), number)
		late += d.Late
		early += d.Early
	}
	e.counter(spansAggregated, s.Merged, "merged")
	e.counter(spansLate, late)
	e.counter(spansEarly, early)
	e.gauge(partitions, uint64(s.Partitions.Partitions))
	e.gauge(spreadPartitions, uint64(s.Partitions.Spread))
	e.counter(partitionMoves, s.Partitions.Moves)
	e.counter(partitionSpreads, s.Partitions.Spreads)
	e.counter(partitionGathers, s.Partitions.Gathers)
	e.to <- prometheus.MustNewConstMetric(drainerLoadRatio, prometheus.GaugeValue, s.Partitions.LoadRatio)
	e.histogram(spanAge, flush.Histogram{Bounds: s.Ages.Bounds, Counts: s.Ages.Counts, Sum: s.Ages.Sum})
	e.seconds(spanAgeMax, s.Ages.Highest)
	e.gauge(aggregates, uint64(s.Aggregates))
	e.gauge(origins, uint64(s.Origins))
	e.gauge(sketchBytes, uint64(s.SketchBytes))
	e.counter(spansCoarsened, s.Coarsened)
}

func (e emitter) flush(s flush.Stats) {
	e.counter(spansFlushed, s.Flushed)
	for reason, spans := range s.Unsent {
		e.counter(spansUnsent, spans, string(reason))
	}
	for result, payloads := range s.Payloads {
		e.counter(payloadsTotal, payloads, string(result))
	}
	e.gauge(retryQueueBytes, uint64(s.QueueBytes))
	reachable := uint64(0)
	if s.Reachable {
		reachable = 1
	}
	e.gauge(agentReachable, reachable)
	e.histogram(payloadBytes, s.PayloadBytes)
	e.histogram(flushSeconds, s.FlushSeconds)
}

func (e emitter) histogram(desc *prometheus.Desc, h flush.Histogram) {
	cumulative, below := map[float64]uint64{}, uint64(0)
	for i, bound := range h.Bounds {
		below += h.Counts[i]
		cumulative[bound] = below
	}
	e.to <- prometheus.MustNewConstHistogram(desc, h.Count(), h.Sum, cumulative)
}
