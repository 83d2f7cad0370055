package doctor

import (
	"maps"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/health"
)

// twice says who else counts the same spans.
func (f *Findings) twice(s *health.Status) {
	const about = "counted twice"
	before := len(*f)
	for _, name := range slices.Sorted(maps.Keys(s.Doors)) {
		d := s.Doors[name]
		if n := d.Requests["by_tracer"]; n > 0 {
			f.add(Notice, about, "have the daemon count them: DD_TRACE_STATS_COMPUTATION_ENABLED=false",
				"door %s: of %d requests the sender has counted the spans itself "+
					"(Datadog-Client-Computed-Stats), so they are not counted here", name, n)
		}
		if on := d.Forward; on != nil && name != "apm" && setting(s, name+"-mark") == "header" {
			f.add(Notice, about, "give --"+name+"-mark=attribute and have what counts there leave out what "+
				"has it, or count there no more (the agent's OTLP statistics, a connector)",
				"door %s: a Collector at %s drops the header that says that requests are counted, so that a "+
					"connector or an agent behind it counts them again", name, shownURL(on.URL))
		}
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
