package datadog

import "github.com/spanstatsd/spanstatsd/internal/ingest/receiver"

// Result is the result of counting a request with traces.
type Result uint8

const (
	ResultCounted       Result = iota // forwarded with the mark
	ResultCountedBefore               // a retry, forwarded with the mark
	ResultByTracer                    // its tracer computes its statistics
	ResultUnread                      // left to the agent: unparsable, or only the agent can interpret it
	ResultNoRoom                      // left to the agent: a ring is full, or the daemon stops
	ResultTooLarge                    // left to the agent: over --apm-max-body, or there is no free memory
	ResultNotWanted                   // left to the agent: it accepts no statistics, or filters traces by tags
	ResultIncomplete                  // its tracer did not send the whole body
	ResultBug                         // left to the agent: an internal error, contained

	results = int(ResultBug) + 1
)

var resultNames = [results]string{
	"counted", "counted_before", "by_tracer", "unread", "no_room", "too_large", "not_wanted", "incomplete",
	"bug",
}

// String returns the name in metrics.
func (r Result) String() string { return resultNames[r] }

// StatsResult is the result of a request with statistics.
type StatsResult uint8

const (
	StatsMerged       StatsResult = iota // sent to the agent as a part of the daemon's own statistics
	StatsMergedBefore                    // a retry
	StatsUnfit                           // forwarded: they can't be added up exactly, such as half a span
	StatsMapping                         // forwarded: the mapping of a sketch is unknown, or there are too many
	StatsOtherTime                       // forwarded: their time is that of no bucket, and they are not recent
	StatsUnread                          // forwarded: the agent refuses them
	StatsNoRoom                          // forwarded: too many origins, groups or bins, or the daemon stops
	StatsTooLarge                        // forwarded: over --apm-max-body, or there is no free memory
	StatsNotWanted                       // forwarded: the agent accepts no statistics
	StatsIncomplete                      // their tracer did not send the whole body
	StatsBug                             // forwarded: an internal error, contained

	statsResults = int(StatsBug) + 1
)

var statsResultNames = [statsResults]string{
	"merged", "merged_before", "unfit", "mapping", "other_time", "unread", "no_room", "too_large",
	"not_wanted", "incomplete", "bug",
}

// Stats are the counters of the receiver. Every result is present, also at 0.
type Stats struct {
	receiver.Stats
	Requests map[string]uint64 // requests with traces, by result
	Merges   map[string]uint64 // requests with statistics, by result
	Other    uint64            // other requests
	Failed   uint64            // requests that the agent did not answer
	// Unsampled traces that were counted and not forwarded, and whether they are left out now.
	DropsUnsampled                              bool
	UnsampledTraces, UnsampledSpans, SavedBytes uint64
}

// Stats reads the counters. A nil server is off.
func (s *Server) Stats() Stats {
	if s == nil {
		var off *receiver.Server
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

// Shown returns the status that all receivers have.
func (s *Server) Status() receiver.Status {
	now := s.Stats()
	return receiver.Status{Stats: now.Stats, Requests: now.Requests}
}
