package otlp

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"
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
	"counted", "counted_before", "by_tracer", "unread", "no_room", "too_many", "too_large", "busy", "not_wanted", "incomplete", "refused", "other", "bug",
}

// String is the result's name in metrics.
func (r Result) String() string { return resultNames[r] }

// counters are added to once a request.
type counters struct {
	_        cpu.CacheLinePad
	requests [results]atomic.Uint64
	bytes    atomic.Uint64
}

// Stats is what the outside sees. Every result is present, also at 0.
type Stats struct {
	Requests  map[string]uint64 // by result
	Bytes     uint64            // that were walked
	Forwarded map[string]uint64 // requests that were to go on, by outcome
	Waited    uint64            // of them, that found the destination away and were allowed to wait
	Waiting   int               // of them, just now
	// What --otlp-keep had go on and what not, and the bytes that it saved.
	KeptTraces, KeptSpans, GoneTraces, GoneSpans, SavedBytes uint64
	Origins                                                  int
	// Connections are open just now; Refused found no room. LastHeard is when an SDK last
	// had something to say, zero before the first.
	Connections   int
	Refused       uint64
	LastHeard     time.Time
	BufferedBytes int64
}

// Stats reads the counters without disturbing those who write them. A nil server, of a
// daemon that does not listen for OTLP, has counted nothing.
func (s *Server) Stats() Stats {
	stats := Stats{Requests: make(map[string]uint64, results)}
	for _, name := range resultNames {
		stats.Requests[name] = 0
	}
	stats.Forwarded = make(map[string]uint64, outcomes)
	for _, name := range outcomeNames {
		stats.Forwarded[name] = 0
	}
	if s == nil {
		return stats
	}
	if f := s.forward; f != nil {
		for o, name := range outcomeNames {
			stats.Forwarded[name] = f.outcomes[o].Load()
		}
		stats.Waited, stats.Waiting = f.waits.Waited(), f.waits.Now()
	}
	for r, name := range resultNames {
		stats.Requests[name] = s.counters.requests[r].Load()
	}
	stats.Bytes = s.counters.bytes.Load()
	k := &s.kept
	stats.KeptTraces, stats.KeptSpans = k.keptTraces.Load(), k.keptSpans.Load()
	stats.GoneTraces, stats.GoneSpans, stats.SavedBytes = k.goneTraces.Load(), k.goneSpans.Load(), k.savedBytes.Load()
	stats.Origins, stats.BufferedBytes = s.publishers.Count(), s.bodies.Held()
	stats.Connections, stats.LastHeard = s.limiter.Count()
	stats.Refused = s.limiter.Rejected()
	return stats
}
