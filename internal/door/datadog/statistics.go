package datadog

import (
	"errors"
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/door"
)

// statistics is a request that brings them. What can't be merged exactly goes on to the agent as it
// came.
type statistics struct{ job }

// Read merges what a tracer has counted, and answers as the agent would.
func (r *statistics) Read(broken error) *door.Reply {
	if reply := r.notRead(broken, results+int(StatsTooLarge), results+int(StatsIncomplete)); reply != nil {
		return reply
	}
	r.Result = results + int(r.merge())
	if !r.IsCounted() {
		return nil
	}
	return &door.Reply{IsFinal: true, Write: func(w http.ResponseWriter) error {
		r.server.agentState.write(w.Header())
		return nil
	}}
}

// merge adds what is in the body, all or nothing, unless it did before. If it began to, the request
// is counted: then the agent must not get it, whatever went wrong.
func (r *statistics) merge() (result StatsResult) {
	defer func() {
		if p := recover(); p != nil {
			result = StatsBug
			r.server.Log.Bug(p)
		}
	}()
	if r.Fields.Get(headerEncoding) != "" {
		return StatsUnread // the agent does not know of any either
	}
	identifyIn(r.Conn, r.Fields)
	p := <-r.server.merging
	defer func() { r.server.merging <- p.Next() }()
	said := originOf(r.Fields)
	said.ProcessTags, said.ObfuscationVersion = "", r.Fields.Get(headerObfuscation)
	if err := p.Read(r.Body.Bytes, said); err != nil {
		return mergeResult(err)
	}
	origin := p.Origin
	origin.Normalize()
	before, err := r.Merge(origin, p.Groups, p.Width)
	if before {
		return StatsMergedBefore
	}
	return mergeResult(err)
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
