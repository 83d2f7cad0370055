package datadog

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
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
	held := s.hold(w, r, &s.counters.stats[StatsTooLarge], &s.counters.stats[StatsIncomplete])
	if held == nil {
		return
	}
	result, sum := s.merge(r, held.Bytes)
	s.counters.stats[result].Add(1)
	if sum != 0 {
		held.Release()
		s.agentState.Load().write(w.Header())
		s.awaitReceipt(http1.ConnOf(r.Context()), sum, true)
		return
	}
	j := &job{server: s, conn: http1.ConnOf(r.Context()), target: r.Method + " " + r.URL.RequestURI(), header: http1.FieldsOf(r.Header), body: held, decided: true}
	j.forward(w, r)
}

// merge adds what is in the body, all or nothing, unless it did before. If it began to, it
// returns the body's sum: then the agent must not get it, whatever went wrong.
func (s *Server) merge(r *http.Request, body []byte) (result StatsResult, sum uint64) {
	defer func() {
		if p := recover(); p != nil {
			result = StatsBug
			s.log.Bug(p)
		}
	}()
	if r.Header.Get(headerEncoding) != "" {
		return StatsUnread, 0 // the agent does not know of any either
	}
	identifyIn(http1.ConnOf(r.Context()), r.Header)
	m := &s.merging
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.payload
	defer func() { m.payload = p.Next() }()
	said := originOf(r.Header)
	said.ProcessTags, said.ObfuscationVersion = "", r.Header.Get(headerObfuscation)
	err := p.Read(body, said)
	if err != nil {
		return mergeResult(err), 0
	}
	own := s.counted.Sum(body)
	if s.counted.Once(own, func(counted func()) {
		origin := p.Origin
		origin.Normalize()
		err = s.publishers.Merge(func() { counted(); sum = own }, origin, p.Groups, p.Width, time.Now())
	}) {
		return StatsMergedBefore, own
	}
	return mergeResult(err), sum
}

// mergeResult is what became of a body by the error that reading or merging it gave.
func mergeResult(err error) StatsResult {
	switch {
	case err == nil:
		return StatsMerged
	case errors.Is(err, clientstats.ErrUnread):
		return StatsUnread
	case errors.Is(err, clientstats.ErrUnfit):
		return StatsUnfit
	case errors.Is(err, clientstats.ErrMapping), errors.Is(err, aggregate.ErrMappings):
		return StatsMapping
	case errors.Is(err, aggregate.ErrOtherTime):
		return StatsOtherTime
	case errors.Is(err, admit.ErrNotWanted):
		return StatsNotWanted
	}
	return StatsNoRoom // or the daemon stops
}

// agentState is what the agent says of itself in every answer. Tracers fetch /info again
// when it changes, so our own answers say the same.
type agentState struct{ version, state string }

// noteAgentState keeps what an answer of the agent says.
func (s *Server) noteAgentState(field func(name string) string) {
	now := agentState{field(headerAgentVersion), field(headerAgentState)}
	if before := s.agentState.Load(); now != (agentState{}) && (before == nil || *before != now) {
		s.agentState.Store(&now)
	}
}

// write adds it to an answer of ours, if the agent has answered yet.
func (a *agentState) write(h http.Header) {
	if a == nil {
		return
	}
	h.Set(headerAgentVersion, a.version)
	h.Set(headerAgentState, a.state)
}
