package door

import (
	"strconv"
	"time"
)

// Stats is what the outside sees of any door.
type Stats struct {
	Bytes   uint64 // of bodies that were walked
	Waited  uint64 // requests that found who is behind away and were allowed to wait
	Waiting int    // of them, just now
	Origins int
	// Connections are open just now; Refused found no room. LastHeard is when a sender
	// last had something to say, zero before the first.
	Connections   int
	Refused       uint64
	LastHeard     time.Time
	BufferedBytes int64
	// Serving are requests under way, ByNetHTTP all that were not answered on their connection, and
	// Remembered the counted bodies of those whose sender is not known to have the answer.
	Serving    int64
	ByNetHTTP  uint64
	Remembered int
}

// Stats reads the counters without disturbing those who write them.
func (s *Server) Stats() Stats {
	open, heard := s.limiter.Count()
	return Stats{
		Bytes: s.Walked.Load(), Origins: s.publishers.Count(),
		Waited: s.waits.Waited(), Waiting: s.waits.Now(),
		Connections: open, LastHeard: heard, Refused: s.limiter.Rejected(), BufferedBytes: s.Bodies.Held(),
		Serving: s.traffic.serving.Load(), ByNetHTTP: s.traffic.byNetHTTP.Load(),
		Remembered: s.counted.Open(),
	}
}

// Shown is what the outside sees of a door and of what goes on from it, also of a door that is off.
type Shown struct {
	Stats
	Requests  map[string]uint64 // by what became of their count, each also at 0
	Forwarded map[string]uint64 // those that were to go on, by outcome; nil of a door that counts none
	Refusal   *Refusal          // of the last of them; nil where it was taken, or where there was none
}

// Shown reads the counters. A nil server is that of a door that is off.
func (s *Server) Shown(results []string, onward *Onward) (shown Shown) {
	if s != nil {
		shown.Stats = s.Stats()
	}
	shown.Requests, shown.Forwarded = s.Results(results, 0), onward.Counts()
	shown.Refusal = onward.last.Load()
	return shown
}

// Results are the requests by the names of what became of them, of which a door has those. A nil
// server, of a door that is off, has had none.
func (s *Server) Results(names []string, first int) map[string]uint64 {
	all := make(map[string]uint64, len(names))
	for i, name := range names {
		all[name] = 0
		if s != nil {
			all[name] = s.results[first+i].Load()
		}
	}
	return all
}

// Note counts a request that is not held by what became of it.
func (s *Server) Note(result int) { s.results[result].Add(1) }

// IsTrue reads a flag in a header as the agent does: whatever does not say false is true.
func IsTrue(value string) bool {
	said, err := strconv.ParseBool(value)
	return value != "" && (said || err != nil)
}
