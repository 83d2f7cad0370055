package doctor

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// receivers checks all receivers.
func (f *Findings) receivers(s *status.Status) {
	f.socket(s)
	for _, name := range slices.Sorted(maps.Keys(s.Receivers)) {
		f.receiver(name, s.Receivers[name], s.At)
	}
}

// socket checks the Unix socket of the native protocol.
func (f *Findings) socket(s *status.Status) {
	const subject = "receiver socket"
	switch c := &s.Connections; {
	case c.Total > 0:
		f.ok(subject, "native clients: %d connected, %d connections since the start", c.Live, c.Total)
	case len(s.Receivers) > 0:
		f.ok(subject, "no native client has connected; other receivers are enabled")
	default:
		f.add(Notice, subject, "mount the directory of "+setting(s, "socket")+" into the container of the application; "+
			"for Datadog tracers, set --apm-socket; for OpenTelemetry SDKs, set --otlp-addr",
			"no native client has connected, and no other receiver is enabled")
	}
	f.reasons(Wrong, subject, s.Connections.Faults, map[string]string{
		"too_many_connections": "raise --max-connections",
		"not_allowed":          "add the user of the client to --allow-uid",
		"bad_frame":            clientFix,
		"bad_message":          clientFix,
		"half_frame":           "find out why the client exited in the middle of a message",
		"no_hello":             clientFix,
		"too_large":            clientFix,
		"version":              "update the client or the daemon: they support no common version of the protocol",
		"too_slow":             "give the client more CPU: it paused in the middle of a message",
		"bug":                  reportBug,
	}, "%d connections of native clients were closed: %s")
}

// receiver checks an HTTP receiver: its connections, uncounted requests, and its upstream.
func (f *Findings) receiver(name string, d *status.Receiver, now time.Time) {
	subject := "receiver " + name
	if d.LastResponse.IsZero() && d.Connections.Live == 0 {
		f.add(Notice, subject, "configure the endpoint of the sender: the address in --"+name+"-addr or --"+name+"-socket",
			"no sender has connected yet")
	} else {
		f.ok(subject, "%d connections; %d requests counted; last activity %.0f s ago", d.Connections.Live,
			d.Requests["counted"], now.Sub(d.LastResponse).Seconds())
	}
	if d.Refused > 0 {
		f.add(Wrong, subject, "raise --"+name+"-max-connections", "%d connections over the limit were rejected", d.Refused)
	}
	f.signals(subject, d)
	if name == "apm" {
		f.reasons(Notice, subject, d.Requests, requestFixes, "%d requests were not counted here, but left to the agent: %s")
	} else {
		f.reasons(Wrong, subject, d.Requests, requestFixes, "%d requests were not counted: %s")
	}
	if upstream := d.Forward; upstream != nil {
		f.state("upstream of "+name, upstream.URL, upstream.State, upstream.LastError)
	}
}

// signals adds a finding for discarded metrics and logs, which do not lose spans.
func (f *Findings) signals(subject string, d *status.Receiver) {
	for _, signal := range sortedNonZero(d.DiscardedSignals) {
		f.add(Notice, subject, "set OTEL_"+strings.ToUpper(signal)+"_EXPORTER=none for the application, or set "+
			"--otlp-forward for the daemon", "%d requests with %s were accepted and discarded, because there is no "+
			"--otlp-forward; they contain no spans", d.DiscardedSignals[signal], signal)
	}
}

// sdks checks the spans that SDKs report as not exported in their own metrics. The number of exported spans is from the
// last reports, so the daemon can have received more spans since.
func (f *Findings) sdks(s *status.Status) {
	sdks := s.SDKs
	if sdks == nil {
		return
	}
	const subject = "sdks"
	if sdks.Started == 0 { // not reported by the Java SDK
		f.ok(subject, "SDKs report %d exported spans", sdks.Exported)
	} else {
		f.ok(subject, "SDKs report %d started, %d sampled and %d exported spans", sdks.Started, sdks.Sampled,
			sdks.Exported)
	}
	if sdks.Dropped > 0 {
		f.add(Wrong, subject, "raise OTEL_BSP_MAX_QUEUE_SIZE, or lower OTEL_BSP_SCHEDULE_DELAY",
			"SDKs report %d spans dropped before export, usually because the queue was full", sdks.Dropped)
	}
	if sdks.Failed > 0 {
		f.add(Wrong, subject, "read the log of the application, and the findings about the upstream of otlp",
			"SDKs report %d spans that their exporter failed to deliver", sdks.Failed)
	}
	if s.Accounting.Received < sdks.Exported && countsAll(s) {
		f.add(Notice, subject, "check OTEL_EXPORTER_OTLP_TRACES_ENDPOINT of each process, and whether a process has a "+
			"second exporter", "SDKs report %d exported spans, but only %d were received here", sdks.Exported,
			s.Accounting.Received)
	}
}

// countEverySpan is the fix for spans that a sampler discards before the daemon.
const countEverySpan = "to count every span, set OTEL_TRACES_SAMPLER=parentbased_always_on for the application, and sample " +
	"the forwarded traces with --otlp-keep"

// sampling checks whether samplers discard spans before the daemon. A span can contain the rate at which it was sampled,
// and an SDK can report it in metrics. Otherwise the daemon can't know.
func (f *Findings) sampling(s *status.Status) {
	const subject = "sampling"
	b, sdks, before := &s.Accounting, s.SDKs, len(*f)
	if b.AdjustedCount > b.Aggregated {
		f.add(Notice, subject, countEverySpan, "%d counted spans stand for about %d, by the sampling rate that they contain: "+
			"samplers discarded the others before the daemon", b.Aggregated, b.AdjustedCount)
	}
	if sdks != nil && sdks.Sampled < sdks.Started {
		f.add(Notice, subject, countEverySpan, "SDKs report that they sampled %d of %d started spans; the other %d are "+
			"counted only if the sampled spans contain a threshold (ot=th)", sdks.Sampled, sdks.Started,
			sdks.Started-sdks.Sampled)
	}
	if len(*f) == before && s.Receivers["otlp"] != nil {
		f.ok(subject, "no received span contains a sampling rate; spans that an SDK discards without one are not visible here")
	}
}

// countsAll reports whether each span that an SDK exports to the daemon is counted as received.
func countsAll(s *status.Status) bool {
	d := s.Receivers["otlp"]
	return setting(s, "otlp-semantics") != "datadog" && d != nil && d.Requests[computedByClient] == 0
}

// computedByClient is the result of requests whose sender has computed statistics.
const computedByClient = "computed_by_client"

// twice reports other components that count the same spans.
func (f *Findings) twice(s *status.Status) {
	const subject = "counted twice"
	before := len(*f)
	for _, name := range slices.Sorted(maps.Keys(s.Receivers)) {
		d := s.Receivers[name]
		if n := d.Requests[computedByClient]; n > 0 {
			f.add(Notice, subject, "to count them here, set DD_TRACE_STATS_COMPUTATION_ENABLED=false for the application",
				"%d requests to the receiver %s were not counted, because their sender counts itself "+
					"(Datadog-Client-Computed-Stats)", n, name)
		}
		if d.Datadog != nil && sum(d.Statistics) > 0 {
			f.add(Notice, subject, "no fix is needed: their spans are counted once, by the tracer",
				"%d requests to the receiver %s have statistics that tracers computed", sum(d.Statistics), name)
		}
	}
	if d := s.Receivers["otlp"]; d != nil && d.Forward != nil && setting(s, "otlp-mark") == "header" {
		f.add(Notice, subject, "if the upstream is a Collector, set --otlp-mark=attribute, and have the components that count "+
			"behind it ignore spans with that attribute",
			"requests forwarded to %s are marked as counted in a header, which an agent honors and a Collector ignores",
			d.Forward.URL)
	}
	if len(*f) == before {
		f.ok(subject, "no sender reports that it counts itself, and no forwarded span could be counted again by its marker")
	}
}
