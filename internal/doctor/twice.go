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
	}
	if d := s.Doors["otlp"]; d != nil && d.Forward != nil && setting(s, "otlp-mark") == "header" {
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
