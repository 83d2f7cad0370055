package datadog

import (
	"errors"
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// statsRequest is a request with statistics that a tracer has computed. Statistics that can't be merged exactly
// are forwarded unchanged.
type statsRequest struct {
	*receiver.BufferedRequest
	server *Server
}

// Handle adds the statistics in the request to those of the daemon, and returns the response that the agent would
// send. If they can't be added, it returns nil, and the caller forwards the request to the agent. readErr is the error
// of reading the body, or nil. After such an error, Handle adds nothing.
func (r *statsRequest) Handle(readErr error) receiver.Response {
	if readErr != nil {
		return r.server.refuseUnreadable(r.BufferedRequest, readErr, StatsTooLarge.resultIndex(), StatsIncomplete.resultIndex())
	}
	var result StatsResult
	hasPanicked := r.server.CatchPanic(func() { result = r.decodeAndMerge() })
	if hasPanicked {
		result = StatsBug
	}
	r.Result = result.resultIndex()
	areAdded := r.IsCounted // decodeAndMerge has set it when it added the statistics, perhaps before a panic
	if !areAdded {
		return nil
	}
	return func(w http.ResponseWriter) error {
		r.server.agentState.writeTo(w.Header())
		return nil
	}
}

// decodeAndMerge adds all statistics in the body to those of the daemon, or none of them, and returns the result. If an
// equal body was merged before, it adds nothing.
func (r *statsRequest) decodeAndMerge() StatsResult {
	header := r.Header()
	isCompressed := header.Get(headerEncoding) != ""
	if isCompressed {
		return StatsUnread // the agent supports no compression either
	}
	setContainer(containerOf(r.BufferedRequest), header)
	payload := <-r.server.idlePayload // waits while another request uses it
	defer r.server.returnPayload(payload)
	if err := payload.Read(r.Body.Bytes, statsOriginOf(header)); err != nil {
		return mergeResult(err)
	}
	origin := payload.Origin
	origin.Normalize()
	isDuplicate, err := r.Merge(origin, payload.Groups, payload.BucketDuration)
	if isDuplicate {
		return StatsMergedBefore
	}
	return mergeResult(err)
}

// returnPayload empties payload, and makes it available for the next request.
func (s *Server) returnPayload(payload *clientstats.Payload) { s.idlePayload <- payload.Next() }

// statsOriginOf returns the origin of a request with statistics according to the request's header. In such requests the
// process tags are a part of the body, and the header has the version of the obfuscation.
func statsOriginOf(h http.Header) span.Origin {
	origin := originOf(h)
	origin.ProcessTags = ""
	origin.ObfuscationVersion = h.Get(headerObfuscation)
	return origin
}

// mergeResult returns the result of a request for err, the error of reading or merging its statistics.
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
	return newOutbound(r.BufferedRequest, r.Body.Bytes)
}

func (r *statsRequest) Translate(from *http.Response, err error) receiver.Response {
	return r.server.respondLikeAgent(r.BufferedRequest, from, err)
}
