package apm

import (
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// merging is the one place where statistics of tracers are read: a process sends
// them once in ten seconds, so they may wait for one another.
type merging struct {
	mu     sync.Mutex
	groups *groups
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
	defer held.release()
	result := StatsTooLarge
	switch {
	case err == nil:
		result = s.merge(r, held.buf)
	case !errors.Is(err, errNoRoom):
		s.counters.stats[StatsIncomplete].Add(1)
		refuse(w, err)
		return
	}
	s.counters.stats[result].Add(1)
	if result == StatsMerged {
		s.said.Load().write(w.Header())
		return
	}
	head := held.lend()
	defer head.Close()
	if err != nil {
		r.Body = &rest{head: head, tail: r.Body}
		s.stream(w, r)
		return
	}
	r.Body, r.ContentLength, r.TransferEncoding = head, int64(len(held.buf)), nil
	r.GetBody = func() (io.ReadCloser, error) { return held.lend(), nil }
	s.proxy.ServeHTTP(w, r)
}

// merge adds what is in the body, all or nothing.
func (s *Server) merge(r *http.Request, body []byte) (result StatsResult) {
	defer func() {
		if p := recover(); p != nil {
			result = StatsBug
			s.log.bug(p, debug.Stack())
		}
	}()
	if r.Header.Get(headerEncoding) != "" {
		return StatsUnread // the agent does not know of any either
	}
	s.identify(r, r.Header)
	m := &s.merging
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.groups
	defer func() { m.groups = g.kept() }()
	if why, ok := g.read(body, r.Header); !ok {
		return why
	}
	switch err := s.publishers.merge(g, time.Now()); err {
	case nil:
		return StatsMerged
	case aggregate.ErrOtherTime:
		return StatsOtherTime
	case aggregate.ErrMappings:
		return StatsMapping
	case ingest.ErrNotWanted:
		return StatsNotWanted
	default: // it has no room, or stops
		return StatsNoRoom
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
