package flush

import "sync"

// states compares the agent's Datadog-Agent-State headers with the /info that
// was read. Behind a proxy that rewrites /info the two never agree; a header
// already acted upon is therefore not acted upon again.
type states struct {
	mu     sync.Mutex
	body   string // of the /info last read
	header string // last seen
}

func (s *states) read(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body = state
}

// changed notes the header of an answer and says whether /info is out of date.
func (s *states) changed(header string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if header == "" || header == s.header {
		return false
	}
	s.header = header
	return header != s.body
}
