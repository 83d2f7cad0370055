package doctor

import "github.com/spanstatsd/spanstatsd/internal/health"

// sdks says what SDKs did with their spans before anybody else had them, as they say themselves. What they
// exported is as of their last report, so that more has come here in the meantime, and never less.
func (f *Findings) sdks(s *health.Status) {
	said := s.SDKs
	if said == nil {
		return
	}
	const about = "sdks"
	if said.Started == 0 { // Java does not say that
		f.ok(about, "by their own metrics they exported %d spans", said.Exported)
	} else {
		f.ok(about, "by their own metrics they began %d spans, sampled %d, and exported %d", said.Started,
			said.Sampled, said.Exported)
	}
	if n := said.Started - min(said.Started, said.Sampled); n > 0 {
		f.add(Notice, about, "OTEL_TRACES_SAMPLER=parentbased_always_on, or a sampler that writes "+
			"thresholds (ot=th), by which what is left out is counted all the same",
			"of %d spans they sampled %d away, which nobody counts but by their thresholds", said.Started, n)
	}
	if said.Dropped > 0 {
		f.add(Wrong, about, "raise OTEL_BSP_MAX_QUEUE_SIZE, or lower OTEL_BSP_SCHEDULE_DELAY",
			"%d spans never left their SDK, nearly always because its queue was full", said.Dropped)
	}
	if said.Failed > 0 {
		f.add(Wrong, about, "the log of the application says why; see the line of door otlp forward",
			"%d spans were given up by their exporter", said.Failed)
	}
	if s.Books.Received < said.Exported && countsAll(s) {
		f.add(Notice, about,
			"look at OTEL_EXPORTER_OTLP_TRACES_ENDPOINT of each process, and at a second exporter",
			"they exported %d spans, of which at most %d came here", said.Exported, s.Books.Received)
	}
}

// countsAll says whether each span that an SDK exports here is received.
func countsAll(s *health.Status) bool {
	d := s.Doors["otlp"]
	return setting(s, "otlp-reading") != "datadog" && d != nil && d.Requests["by_tracer"] == 0
}
