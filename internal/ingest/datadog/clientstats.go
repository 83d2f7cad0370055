package datadog

import (
	"errors"
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
)

// statsRequest is a request with statistics that a tracer has computed. Statistics that can't be merged exactly
// are forwarded unchanged.
type statsRequest struct {
	*receiver.BufferedRequest
	server *Server
}

// Count merges the statistics, and responds as the agent would.
func (r *statsRequest) Count(readErr error) receiver.Response {
	if readErr != nil {
		return r.server.refuseUnreadable(r.BufferedRequest, readErr, results+int(StatsTooLarge),
			results+int(StatsIncomplete))
	}
	result := StatsBug
	r.server.CatchPanic(func() { result = r.merge() })
	r.Result = results + int(result)
	isMerged := r.IsCounted // also if merging panicked after a part: the agent must not count that part again
	if !isMerged {
		return nil
	}
	return func(w http.ResponseWriter) error {
		r.server.agentState.write(w.Header())
		return nil
	}
}

// merge merges all statistics of the body, or none of them. A retry is not merged again.
func (r *statsRequest) merge() StatsResult {
	h := r.Header()
	if h.Get(headerEncoding) != "" {
		return StatsUnread // the agent supports none either
	}
	setContainer(containerOf(r.BufferedRequest), h)
	p := <-r.server.merging
	defer func() { r.server.merging <- p.Next() }()
	origin := originOf(h)
	origin.ProcessTags, origin.ObfuscationVersion = "", h.Get(headerObfuscation)
	if err := p.Read(r.Body.Bytes, origin); err != nil {
		return mergeResult(err)
	}
	origin = p.Origin
	origin.Normalize()
	isDuplicate, err := r.Merge(origin, p.Groups, p.Width)
	if isDuplicate {
		return StatsMergedBefore
	}
	return mergeResult(err)
}

// mergeResult returns the result for the error of reading or merging a body.
func mergeResult(err error) StatsResult {
	switch {
	case err == nil:
		return StatsMerged
	case errors.Is(err, clientstats.ErrUnparsable):
		return StatsUnread
	case errors.Is(err, clientstats.ErrIncompatible):
		return StatsUnfit
	case errors.Is(err, clientstats.ErrMapping), errors.Is(err, aggregate.ErrMappings):
		return StatsMapping
	case errors.Is(err, aggregate.ErrOtherTime):
		return StatsOtherTime
	case errors.Is(err, admit.ErrNotWanted):
		return StatsNotWanted
	}
	return StatsNoRoom
}

func (r *statsRequest) Outbound() receiver.OutboundRequest {
	return outbound(r.BufferedRequest, r.Body.Bytes)
}

func (r *statsRequest) Translate(from *http.Response, err error) receiver.Response {
	return r.server.translate(r.BufferedRequest, from, err)
}
