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
	const about = "door socket"
	switch c := &s.Connections; {
	case c.Total > 0:
		f.ok(about, "%d clients are connected, %d were in all", c.Live, c.Total)
	case len(s.Receivers) > 0:
		f.ok(about, "no client of the socket has connected; other doors are open")
	default:
		f.add(Notice, about, "mount the directory of "+setting(s, "socket")+" into the application's "+
			"container; for tracers and SDKs as they are open a door: --apm-socket, --otlp-addr",
			"no client has connected, and no other door is open")
	}
	f.reasons(Wrong, about, s.Connections.Faults, map[string]string{
		"too_many_connections": "raise --max-connections",
		"not_allowed":          "name the client's user in --allow-uid",
		"bad_frame":            clientFix, "bad_message": clientFix,
		"half_frame": "a client died, or was cut off",
		"no_hello":   clientFix, "too_large": clientFix, "version": "update the client, or the daemon",
		"too_slow": "a client stopped in the middle of a message: it may be out of CPU",
		"bug":      requestFixes["bug"],
	}, "%d connections were closed: %s")
}

// receiver checks an HTTP receiver: its connections, uncounted requests, and its upstream.
func (f *Findings) receiver(name string, d *status.ForwardingReceiver, now time.Time) {
	about := "door " + name
	switch {
	case d.LastHeard.IsZero() && d.Connections.Live == 0:
		f.add(Notice, about, "point the sender's endpoint at --"+name+"-addr or --"+name+"-socket",
			"it is open, and nobody has sent %s", d.Receives)
	default:
		f.ok(about, "%d connections, %d requests counted, heard %.0f s ago", d.Connections.Live,
			d.Requests["counted"], now.Sub(d.LastHeard).Seconds())
	}
	if d.Refused > 0 {
		f.add(Wrong, about, "raise --"+name+"-max-connections", "%d connections found no room", d.Refused)
	}
	f.signals(about, d)
	if name == "apm" {
		f.reasons(Notice, about, d.Requests, requestFixes, "%d requests were left to the agent to count: %s")
	} else {
		f.reasons(Wrong, about, d.Requests, requestFixes, "%d requests were not counted: %s")
	}
	if upstream := d.Forward; upstream != nil {
		f.state(about+" forward", upstream.URL, string(upstream.State), upstream.Said)
	}
}

// signals adds a finding for discarded metrics and logs, which do not lose spans.
func (f *Findings) signals(about string, d *status.ForwardingReceiver) {
	for _, signal := range sortedNonZero(d.DiscardedSignals) {
		f.add(Notice, about, "set OTEL_"+strings.ToUpper(signal)+"_EXPORTER=none for the application, or give the "+
			"daemon --otlp-forward", "%d requests with %s were accepted and discarded, because there is no "+
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
	const about = "sdks"
	if sdks.Started == 0 { // not reported by the Java SDK
		f.ok(about, "by their own metrics they exported %d spans", sdks.Exported)
	} else {
		f.ok(about, "by their own metrics they began %d spans, sampled %d, and exported %d", sdks.Started,
			sdks.Sampled, sdks.Exported)
	}
	if n := sdks.Started - min(sdks.Started, sdks.Sampled); n > 0 {
		f.add(Notice, about, "OTEL_TRACES_SAMPLER=parentbased_always_on, or a sampler that writes "+
			"thresholds (ot=th), by which what is left out is counted all the same",
			"of %d spans they sampled %d away, which nobody counts but by their thresholds", sdks.Started, n)
	}
	if sdks.Dropped > 0 {
		f.add(Wrong, about, "raise OTEL_BSP_MAX_QUEUE_SIZE, or lower OTEL_BSP_SCHEDULE_DELAY",
			"%d spans never left their SDK, nearly always because its queue was full", sdks.Dropped)
	}
	if sdks.Failed > 0 {
		f.add(Wrong, about, "the log of the application says why; see the line of door otlp forward",
			"%d spans were given up by their exporter", sdks.Failed)
	}
	if s.Books.Received < sdks.Exported && countsAll(s) {
		f.add(Notice, about,
			"look at OTEL_EXPORTER_OTLP_TRACES_ENDPOINT of each process, and at a second exporter",
			"they exported %d spans, of which at most %d came here", sdks.Exported, s.Books.Received)
	}
}

// countsAll reports whether each span that an SDK exports to the daemon is counted as received.
func countsAll(s *status.Status) bool {
	d := s.Receivers["otlp"]
	return setting(s, "otlp-reading") != "datadog" && d != nil && d.Requests["by_tracer"] == 0
}

// twice reports other components that count the same spans.
func (f *Findings) twice(s *status.Status) {
	const about = "counted twice"
	before := len(*f)
	for _, name := range slices.Sorted(maps.Keys(s.Receivers)) {
		d := s.Receivers[name]
		if n := d.Requests["by_tracer"]; n > 0 {
			f.add(Notice, about, "have the daemon count them: DD_TRACE_STATS_COMPUTATION_ENABLED=false",
				"door %s: of %d requests the sender has counted the spans itself "+
					"(Datadog-Client-Computed-Stats), so they are not counted here", name, n)
		}
	}
	if d := s.Receivers["otlp"]; d != nil && d.Forward != nil && setting(s, "otlp-mark") == "header" {
		f.add(Notice, about, "where a Collector is there, give --otlp-mark=attribute and have what counts "+
			"behind it leave out what has it, or count there no more (an agent, a connector)",
			"door otlp: what goes on to %s says in a header that it is counted; an agent heeds that, and a "+
				"Collector neither heeds it nor hands it on", d.Forward.URL)
	}
	if s.APM != nil {
		computed := uint64(0)
		for _, n := range s.APM.Statistics {
			computed += n
		}
		if computed > 0 {
			f.add(Notice, about, "none is needed: such spans are in the statistics once, those of the tracer",
				"%d requests with statistics that tracers computed themselves came by door apm", computed)
		}
	}
	if len(*f) == before {
		f.ok(about, "no sender says that it counts itself, and nothing goes on that could be counted again")
	}
}
