package apm

import (
	"errors"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/clientstats"
)

// merging is the one place where statistics of tracers are read: a process sends
// them once in ten seconds, so they may wait for one another.
type merging struct {
	mu      sync.Mutex
	payload *clientstats.Payload
}

// serveStats merges what a tracer has counted, and answers as the agent would; what
// can't be merged exactly goes on to the agent as it came.
func (s *Server) serveStats(w http.ResponseWriter, r *http.Request) {
	if !s.merges.Load() {
		s.counters.stats[StatsNotWanted].Add(1)
		s.stream(w, r)
		return
	}
	held, err := s.hold(w, r)
	switch {
	case errors.Is(err, errNoRoom):
		s.counters.stats[StatsTooLarge].Add(1)
		s.streamRest(w, r, held)
		return
	case err != nil:
		s.counters.stats[StatsIncomplete].Add(1)
		held.release()
		refuse(w, err)
		return
	}
	result, taken := s.merge(r, held.buf)
	s.counters.stats[result].Add(1)
	if taken {
		held.release()
		s.said.Load().write(w.Header())
		return
	}
	j := &job{server: s, body: held, settled: true}
	j.forward(w, r)
}

// merge adds what is in the body, all or nothing, and says whether it began to: then
// the agent must not get it, whatever went wrong.
func (s *Server) merge(r *http.Request, body []byte) (result StatsResult, taken bool) {
	defer func() {
		if p := recover(); p != nil {
			result = StatsBug
			s.log.bug(p, debug.Stack())
		}
	}()
	if r.Header.Get(headerEncoding) != "" {
		return StatsUnread, false // the agent does not know of any either
	}
	s.identify(r, r.Header)
	m := &s.merging
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.payload
	defer func() { m.payload = p.Next() }()
	said := originOf(r.Header)
	said.ProcessTags, said.ObfuscationVersion = "", r.Header.Get(headerObfuscation)
	err := p.Read(body, said)
	if err == nil {
		err = s.publishers.merge(func() { taken = true }, p, time.Now())
	}
	switch err {
	case nil:
		return StatsMerged, taken
	case clientstats.ErrUnread:
		return StatsUnread, false
	case clientstats.ErrUnfit:
		return StatsUnfit, false
	case clientstats.ErrMapping:
		return StatsMapping, false
	case aggregate.ErrOtherTime:
		return StatsOtherTime, false
	case aggregate.ErrMappings:
		return StatsMapping, false
	case admit.ErrNotWanted:
		return StatsNotWanted, false
	default: // it has no room, or stops
		return StatsNoRoom, false
	}
}

// agentSaid is what the agent says of itself on every answer. Tracers look into
// /info again when it changes, so our own answers say the same.
type agentSaid struct{ version, state string }

// remember keeps what an answer of the agent says.
func (s *Server) remember(h http.Header) {
	now := agentSaid{h.Get(headerAgentVersion), h.Get(headerAgentState)}
	if before := s.said.Load(); now != (agentSaid{}) && (before == nil || *before != now) {
		s.said.Store(&now)
	}
}

// write says it to a tracer, if the agent has said anything yet.
func (a *agentSaid) write(h http.Header) {
	if a == nil {
		return
	}
	h.Set(headerAgentVersion, a.version)
	h.Set(headerAgentState, a.state)
}
