package flush

import "sync"

// stateHeader compares the agent's Datadog-Agent-State headers with the /info that
// was read. Behind a proxy that rewrites /info the two never agree; a header
// already acted upon is therefore not acted upon again.
type stateHeader struct {
	mu   sync.Mutex
	info string // the header that belongs to the /info last read
	last string // seen
}

func (s *stateHeader) infoRead(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = state
}

// outdates notes the header of an answer and says whether /info is out of date.
func (s *stateHeader) outdates(header string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if header == "" || header == s.last {
		return false
	}
	s.last = header
	return header != s.info
}
