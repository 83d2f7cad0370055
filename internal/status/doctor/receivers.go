package doctor

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// checkReceivers checks the native socket and all enabled HTTP receivers.
func (f *Findings) checkReceivers(s *status.Status) {
	f.checkSocket(s)
	for _, name := range slices.Sorted(maps.Keys(s.Receivers)) {
		f.checkReceiver(name, s.Receivers[name], s.At)
	}
}

// checkSocket checks the Unix socket of the native protocol.
func (f *Findings) checkSocket(s *status.Status) {
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
	f.addReasons(Wrong, subject, s.Connections.Faults, map[string]string{
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

// checkReceiver checks an HTTP receiver: its connections, uncounted requests, and its upstream.
func (f *Findings) checkReceiver(name string, receiver *status.Receiver, now time.Time) {
	subject := "receiver " + name
	wasUsed := !receiver.LastResponse.IsZero() || receiver.Connections.Live > 0
	if wasUsed {
		f.ok(subject, "%d connections; %d requests counted; last activity %.0f s ago", receiver.Connections.Live,
			receiver.Requests["counted"], now.Sub(receiver.LastResponse).Seconds())
	} else {
		f.add(Notice, subject, "configure the endpoint of the sender: the address in --"+name+"-addr or --"+name+"-socket",
			"no sender has connected yet")
	}
	if receiver.Refused > 0 {
		f.add(Wrong, subject, "raise --"+name+"-max-connections", "%d connections over the limit were rejected",
			receiver.Refused)
	}
	f.checkDiscardedSignals(subject, receiver)
	f.checkUncountedRequests(name, subject, receiver)
	if upstream := receiver.Forward; upstream != nil {
		f.checkState("upstream of "+name, upstream.URL, upstream.State, upstream.LastError)
	}
}

// checkUncountedRequests adds a finding for each reason for which a receiver has not counted requests. For
// the Datadog receiver, each finding is only a notice, because the agent counts these requests.
func (f *Findings) checkUncountedRequests(name, subject string, receiver *status.Receiver) {
	const datadogReceiver = "apm"
	if name == datadogReceiver {
		f.addReasons(Notice, subject, receiver.Requests, requestFixes,
			"%d requests were not counted here, but left to the agent: %s")
		return
	}
	f.addReasons(Wrong, subject, receiver.Requests, requestFixes, "%d requests were not counted: %s")
}

// checkDiscardedSignals adds a notice for metrics and one for logs, if a receiver has received and discarded
// requests with them. They are not errors, because these requests contain no spans.
func (f *Findings) checkDiscardedSignals(subject string, receiver *status.Receiver) {
	for _, signal := range sortedNonZero(receiver.DiscardedSignals) {
		f.add(Notice, subject, "set OTEL_"+strings.ToUpper(signal)+"_EXPORTER=none for the application, or set "+
			"--otlp-forward for the daemon", "%d requests with %s were accepted and discarded, because there is no "+
			"--otlp-forward; they contain no spans", receiver.DiscardedSignals[signal], signal)
	}
}

// checkSDKs adds findings about the numbers of spans that OpenTelemetry SDKs have exported and lost. It
// knows them from the metrics that SDKs send about themselves, and does nothing if no SDK has sent any.
func (f *Findings) checkSDKs(s *status.Status) {
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
	f.checkSDKLosses(subject, s)
	missesSpans := s.Accounting.Received < sdks.Exported
	if missesSpans && countsEveryOTLPSpan(s) {
		const fix = "check OTEL_EXPORTER_OTLP_TRACES_ENDPOINT of each process, and whether a process has a second exporter"
		f.add(Notice, subject, fix, "SDKs report %d exported spans, but only %d were received here", sdks.Exported,
			s.Accounting.Received)
	}
}

// checkSDKLosses adds findings about spans that OpenTelemetry SDKs have lost before or during the export.
func (f *Findings) checkSDKLosses(subject string, s *status.Status) {
	sdks := s.SDKs
	if sdks.Dropped > 0 {
		f.add(Wrong, subject, "raise OTEL_BSP_MAX_QUEUE_SIZE, or lower OTEL_BSP_SCHEDULE_DELAY",
			"SDKs report %d spans dropped before export, usually because the queue was full", sdks.Dropped)
	}
	if sdks.Failed > 0 {
		f.add(Wrong, subject, "read the log of the application, and the findings about the upstream of otlp",
			"SDKs report %d spans that their exporter failed to deliver", sdks.Failed)
	}
}

// samplerFix is the fix for spans that a sampler discards before the daemon.
const samplerFix = "to count every span, set OTEL_TRACES_SAMPLER=parentbased_always_on for the application, and sample " +
	"the forwarded traces with --otlp-keep"

// checkSampling adds findings about whether samplers discard spans before they reach the daemon. It derives
// this from the sampling rates in received spans, and from the metrics that SDKs send about themselves.
func (f *Findings) checkSampling(s *status.Status) {
	const subject = "sampling"
	sdks := s.SDKs
	counted, estimated := s.Accounting.Aggregated, s.Accounting.AdjustedCount
	spansHaveRates := estimated > counted
	if spansHaveRates {
		f.add(Notice, subject, samplerFix, "%d counted spans stand for about %d, by the sampling rate that they contain: "+
			"samplers discarded the others before the daemon", counted, estimated)
	}
	sdksSample := sdks != nil && sdks.Sampled < sdks.Started
	if sdksSample {
		f.add(Notice, subject, samplerFix, "SDKs report that they sampled %d of %d started spans; the other %d are "+
			"counted only if the sampled spans contain a threshold (ot=th)", sdks.Sampled, sdks.Started,
			sdks.Started-sdks.Sampled)
	}
	receivesFromSDKs := s.Receivers["otlp"] != nil
	if receivesFromSDKs && !spansHaveRates && !sdksSample {
		f.ok(subject, "no received span contains a sampling rate; spans that an SDK discards without one are not visible here")
	}
}

// countsEveryOTLPSpan reports whether the daemon counts every span that an SDK exports to the OTLP receiver. It
// returns false if Datadog's semantics are configured, because they exclude some spans. It also returns false if the
// receiver got requests that it does not count, because their senders compute statistics themselves.
func countsEveryOTLPSpan(s *status.Status) bool {
	receiver := s.Receivers["otlp"]
	if receiver == nil || setting(s, "otlp-semantics") == "datadog" {
		return false
	}
	return receiver.Requests[computedByClient] == 0
}

// computedByClient is the result of requests whose sender has computed statistics.
const computedByClient = "computed_by_client"

// checkDoubleCounting reports components before or after the daemon that count the same spans.
func (f *Findings) checkDoubleCounting(s *status.Status) {
	const subject = "counted twice"
	previousFindings := len(*f)
	for _, name := range slices.Sorted(maps.Keys(s.Receivers)) {
		f.checkCountingSenders(subject, name, s.Receivers[name])
	}
	f.checkMark(subject, s)
	hasFinding := len(*f) > previousFindings
	if !hasFinding {
		f.ok(subject, "no sender reports that it counts itself, and no forwarded span could be counted again by its marker")
	}
}

// checkCountingSenders adds findings about senders that compute statistics themselves.
func (f *Findings) checkCountingSenders(subject, name string, receiver *status.Receiver) {
	if uncounted := receiver.Requests[computedByClient]; uncounted > 0 {
		f.add(Notice, subject, "to count them here, set DD_TRACE_STATS_COMPUTATION_ENABLED=false for the application",
			"%d requests to the receiver %s were not counted, because their sender counts itself "+
				"(Datadog-Client-Computed-Stats)", uncounted, name)
	}
	if receiver.Datadog != nil && sum(receiver.Statistics) > 0 {
		f.add(Notice, subject, "no fix is needed: their spans are counted once, by the tracer",
			"%d requests to the receiver %s have statistics that tracers computed", sum(receiver.Statistics), name)
	}
}

// checkMark adds a finding if an HTTP header is the only mark of a forwarded OTLP request whose spans are already
// counted. An upstream that ignores the header counts them again.
func (f *Findings) checkMark(subject string, s *status.Status) {
	receiver := s.Receivers["otlp"]
	hasUpstream := receiver != nil && receiver.Forward != nil
	usesHeader := setting(s, "otlp-mark") == "header"
	if !hasUpstream || !usesHeader {
		return
	}
	f.add(Notice, subject, "if the upstream is a Collector, set --otlp-mark=attribute, and have the components that count "+
		"behind it ignore spans with that attribute",
		"requests forwarded to %s are marked as counted in a header, which an agent honors and a Collector ignores",
		receiver.Forward.URL)
}
