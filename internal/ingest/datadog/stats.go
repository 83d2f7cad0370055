package datadog

import "github.com/spanstatsd/spanstatsd/internal/ingest/receiver"

// Result is the result of counting a request with traces.
type Result uint8

const (
	ResultCounted       Result = iota // forwarded with headerComputedStats
	ResultCountedBefore               // a retry, forwarded with headerComputedStats
	ResultByTracer                    // the tracer computes the statistics
	ResultUnread                      // left to the agent: unparsable, or only the agent can interpret it
	ResultNoRoom                      // left to the agent: a ring is full, or the daemon shuts down
	ResultTooLarge                    // left to the agent: over --apm-max-body or --apm-max-body-bytes
	ResultNotWanted                   // left to the agent: it accepts no statistics, or filters traces by tags
	ResultIncomplete                  // the tracer sent only a part of the body
	ResultBug                         // left to the agent: recovered panic

	results = int(ResultBug) + 1
)

var resultNames = [results]string{
	"counted", "duplicate", "computed_by_client", "unparsable", "no_room", "too_large", "not_wanted", "incomplete",
	"bug",
}

// String returns the name in metrics.
func (r Result) String() string { return resultNames[r] }

// StatsResult is the result of a request with statistics.
type StatsResult uint8

const (
	StatsMerged       StatsResult = iota // sent to the agent as a part of the daemon's own statistics
	StatsMergedBefore                    // a retry
	StatsUnfit                           // forwarded: can't be added exactly, such as half a span
	StatsMapping                         // forwarded: unknown sketch mapping, or too many mappings
	StatsOtherTime                       // forwarded: no current bucket has their start and width
	StatsUnread                          // forwarded: unparsable, for the agent to refuse
	StatsNoRoom                          // forwarded: too many origins, groups or bins, or the daemon shuts down
	StatsTooLarge                        // forwarded: over --apm-max-body or --apm-max-body-bytes
	StatsNotWanted                       // forwarded: the agent accepts no statistics
	StatsIncomplete                      // the tracer sent only a part of the body
	StatsBug                             // forwarded: recovered panic

	statsResults = int(StatsBug) + 1
)

var statsResultNames = [statsResults]string{
	"merged", "duplicate", "incompatible", "mapping", "other_time", "unparsable", "no_room", "too_large",
	"not_wanted", "incomplete", "bug",
}

// Stats are the counters of the receiver. Every result is present, also at 0.
type Stats struct {
	receiver.Stats
	Requests map[string]uint64 // requests with traces, by result
	Merges   map[string]uint64 // requests with statistics, by result
	Other    uint64            // other requests
	Failed   uint64            // requests without a response of the agent
	// DropsUnsampled reports whether unsampled traces are currently not forwarded. The counts are those of all
	// unsampled traces that were not forwarded.
	DropsUnsampled                              bool
	UnsampledTraces, UnsampledSpans, SavedBytes uint64
}

// Stats returns the current counters. A nil Server is a disabled receiver, with all counters at 0.
func (s *Server) Stats() Stats {
	if s == nil {
		var disabled *receiver.Server
		return Stats{
			Requests: disabled.Results(resultNames[:], 0),
			Merges:   disabled.Results(statsResultNames[:], results),
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

// Status returns the part of Stats that all receivers have.
func (s *Server) Status() receiver.Status {
	now := s.Stats()
	return receiver.Status{Stats: now.Stats, Requests: now.Requests}
}
