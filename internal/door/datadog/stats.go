package datadog

import "github.com/spanstatsd/spanstatsd/internal/door"

// Stats is what the outside sees. Every result is present, also at 0.
type Stats struct {
	door.Stats
	Requests map[string]uint64 // with traces, by result
	Merges   map[string]uint64 // requests with statistics, by result
	Other    uint64            // requests of any other kind
	Failed   uint64            // requests that the agent did not answer
	// What was counted and not forwarded, because sampling threw it away, and whether what
	// comes now is not.
	DropsUnsampled                              bool
	UnsampledTraces, UnsampledSpans, SavedBytes uint64
}

// Stats reads the counters without disturbing those who write them. A nil server, of a
// daemon that does not listen for traces, has counted nothing.
func (s *Server) Stats() Stats {
	if s == nil {
		var off *door.Server
		return Stats{
			Requests: off.Results(resultNames[:], 0),
			Merges:   off.Results(statsResultNames[:], results),
		}
	}
	c := &s.counters
	return Stats{
		Stats:    s.Server.Stats(),
		Requests: s.Results(resultNames[:], 0), Merges: s.Results(statsResultNames[:], results),
		Other: c.other.Load(), Failed: c.failed.Load(), DropsUnsampled: s.drops.Load(),
		UnsampledTraces: c.unsampledTraces.Load(), UnsampledSpans: c.unsampledSpans.Load(),
		SavedBytes: c.savedBytes.Load(),
	}
}

// Shown is what it has in common with other doors.
func (s *Server) Shown() door.Shown {
	now := s.Stats()
	return door.Shown{Stats: now.Stats, Requests: now.Requests}
}
