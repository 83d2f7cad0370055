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

// resultNames are the names of the results in metrics.
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

// statsResultNames are the names of the results in metrics.
var statsResultNames = [statsResults]string{
	"merged", "duplicate", "incompatible", "mapping", "other_time", "unparsable", "no_room", "too_large",
	"not_wanted", "incomplete", "bug",
}

// resultIndex returns the index of the result in receiver.Setup.Results.
func (r Result) resultIndex() int { return int(r) }

// resultIndex returns the index of the result in receiver.Setup.Results, after all values of Result.
func (r StatsResult) resultIndex() int { return results + int(r) }

// Stats are the counters of the receiver. Every result is present, also at 0.
type Stats struct {
	receiver.Stats
	Requests map[string]uint64 // requests with traces, by result
	Merges   map[string]uint64 // requests with statistics, by result
	Other    uint64            // other requests
	Failed   uint64            // requests without a response of the agent

	DropsUnsampled  bool   // whether unsampled traces are currently not forwarded
	UnsampledTraces uint64 // unsampled traces that were not forwarded
	UnsampledSpans  uint64 // spans of unsampled traces that were not forwarded
	SavedBytes      uint64 // bytes of unsampled traces that were not forwarded
}

// Stats returns the current counters. A nil Server is a disabled receiver, with all counters at 0.
func (s *Server) Stats() Stats {
	if s == nil {
		var disabled *receiver.Server
		return Stats{
			Requests: disabled.Results(resultNames[:], 0),
			Merges:   disabled.Results(statsResultNames[:], StatsMerged.resultIndex()),
		}
	}
	return Stats{
		Stats:           s.Server.Stats(),
		Requests:        s.Results(resultNames[:], 0),
		Merges:          s.Results(statsResultNames[:], StatsMerged.resultIndex()),
		Other:           s.counters.other.Load(),
		Failed:          s.counters.failed.Load(),
		DropsUnsampled:  s.dropsUnsampled.Load(),
		UnsampledTraces: s.counters.unsampledTraces.Load(),
		UnsampledSpans:  s.counters.unsampledSpans.Load(),
		SavedBytes:      s.counters.savedBytes.Load(),
	}
}

// Status returns the part of Stats that all receivers have.
func (s *Server) Status() receiver.Status {
	stats := s.Stats()
	return receiver.Status{Stats: stats.Stats, Requests: stats.Requests}
}
