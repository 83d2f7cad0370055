package otlp

import (
	"github.com/spanstatsd/spanstatsd/internal/door"
)

// Result is what became of a request as far as counting goes.
type Result uint8

const (
	ResultCounted       Result = iota
	ResultCountedBefore        // its SDK has no answer to it yet, or one that says try again, and does
	ResultByTracer             // its sender says that it computes its statistics itself
	ResultUnread               // it can't be read
	ResultNoRoom               // a ring or an interval has no room, or the daemon stops
	ResultTooMany              // it has more spans than the rings can ever hold
	ResultTooLarge             // over --otlp-max-body, as it comes or without gzip
	ResultBusy                 // no buffer is free
	ResultNotWanted            // no destination takes statistics
	ResultIncomplete           // its SDK did not send all of it
	ResultRefused              // nothing that is taken here, by its path, method or header
	ResultOther                // metrics or logs, which have no spans
	ResultBug                  // a defect of ours, contained

	results = int(ResultBug) + 1
)

// resultNames are the results' names in metrics.
var resultNames = [results]string{
	"counted", "counted_before", "by_tracer", "unread", "no_room", "too_many", "too_large", "busy",
	"not_wanted", "incomplete", "refused", "other", "bug",
}

// String is the result's name in metrics.
func (r Result) String() string { return resultNames[r] }

// Stats is what the outside sees. Every result is present, also at 0.
type Stats struct {
	door.Stats
	Requests  map[string]uint64 // by result
	Forwarded map[string]uint64 // requests that were to go on, by outcome
	// What --otlp-keep had go on and what not, and the bytes that it saved.
	KeptTraces, KeptSpans, GoneTraces, GoneSpans, SavedBytes uint64
}

// Stats reads the counters without disturbing those who write them. A nil server, of a
// daemon that does not listen for OTLP, has counted nothing.
func (s *Server) Stats() (stats Stats) {
	stats.Forwarded = make(map[string]uint64, outcomes)
	for o, name := range outcomeNames {
		stats.Forwarded[name] = 0
		if s != nil {
			stats.Forwarded[name] = s.outcomes[o].Load()
		}
	}
	if s == nil {
		var off *door.Server
		stats.Requests = off.Results(resultNames[:], 0)
		return stats
	}
	stats.Stats, stats.Requests = s.Server.Stats(), s.Results(resultNames[:], 0)
	k := &s.kept
	stats.KeptTraces, stats.KeptSpans = k.keptTraces.Load(), k.keptSpans.Load()
	stats.GoneTraces, stats.GoneSpans, stats.SavedBytes = k.goneTraces.Load(), k.goneSpans.Load(),
		k.savedBytes.Load()
	return stats
}
