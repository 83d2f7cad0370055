package admit

import "sync"

// settling knows which of a publisher's spans lie in which cycles, so far as is needed to
// say how many have had their outcome: by the end of each cycle that it was in, how many
// spans it had been given. It is written once a cycle, by the publisher; any goroutine may
// ask.
type settling struct {
	mu      sync.Mutex
	cycle   uint64 // number plus one of the one it was in last, 0 before the first
	ended   [marks]ended
	n       int    // of ended, the oldest first
	settled uint64 // spans
}

// ended is how many spans a publisher had been given when it was in a cycle for the last
// time.
type ended struct{ cycle, spans uint64 }

// marks are enough for the cycles of a minute. Where more have no outcome, because the
// agent is away, the newest are taken for one, and settled with the last of them.
const marks = 8

// join notes that the publisher is in another cycle now, and what it had been given before.
func (s *settling) join(cycle, spans uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cycle > 0 {
		s.n = min(s.n, marks-1)
		s.ended[s.n] = ended{s.cycle, spans}
		s.n++
	}
	s.cycle = cycle + 1
}

// through is how many spans have had their outcome where all cycles before that one have.
// given is how many the publisher had been given, all of them in cycles that it has joined.
func (s *settling) through(cycle, given uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := 0
	for done < s.n && s.ended[done].cycle <= cycle {
		s.settled = s.ended[done].spans
		done++
	}
	s.n = copy(s.ended[:], s.ended[done:s.n])
	if s.cycle <= cycle {
		s.settled = given
	}
	return s.settled
}
