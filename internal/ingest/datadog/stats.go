package datadog

import "github.com/spanstatsd/spanstatsd/internal/ingest/receiver"

// Result is the result of counting a request with traces. It is forwarded in any case.
type Result uint8

const (
	ResultCounted       Result = iota // forwarded with the mark
	ResultCountedBefore               // the same: a retry
	ResultByTracer                    // its tracer computes its statistics
	ResultUnread                      // left to the agent: not parsable, or only the agent can judge it
	ResultNoRoom                      // left: a ring has no room, or the daemon stops
	ResultTooLarge                    // left: over --apm-max-body, or no memory is free
	ResultNotWanted                   // left: the agent takes no statistics, or filters traces by tags
	ResultIncomplete                  // its tracer did not send all of it
	ResultBug                         // left: an internal error, contained

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
	StatsMerged       StatsResult = iota // into ours; the agent gets them with those
	StatsMergedBefore                    // the same: a retry
	StatsUnfit                           // forwarded: they can't be added up exactly, such as half a span
	StatsMapping                         // forwarded: sketches of a mapping that is unknown or one too many
	StatsOtherTime                       // forwarded: neither of a bucket of ours nor just sent
	StatsUnread                          // forwarded: the agent says what is wrong
	StatsNoRoom                          // forwarded: too many origins, groups or bins, or the daemon stops
	StatsTooLarge                        // forwarded: over --apm-max-body, or no memory is free
	StatsNotWanted                       // forwarded: the agent takes no statistics
	StatsIncomplete                      // its tracer did not send all of it
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
	Requests map[string]uint64 // with traces, by result
	Merges   map[string]uint64 // with statistics, by result
	Other    uint64            // requests of any other kind
	Failed   uint64            // requests without a response of the agent
	// Traces that were counted and not forwarded, because sampling dropped them, and whether that is
	// switched on.
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
