package datadog

import (
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"os"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/sampling/unsampled"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// traceRequest is a request with traces.
type traceRequest struct {
	*receiver.BufferedRequest
	server      *Server
	format      decode.Format
	drops       bool   // whether unsampled traces are not forwarded
	isUncounted bool   // whether the request must not be counted, because of its header or the agent's features
	result      Result // result of counting; set from the start if isUncounted
	sampled     []byte // body without unsampled traces; nil if the whole body is forwarded
}

// resultIfUncounted returns the result of a request that must not be counted, because of its header or because the
// agent accepts no statistics. It reports false if the request must be counted.
func (s *Server) resultIfUncounted(format decode.Format, h http.Header) (result Result, isUncounted bool) {
	switch {
	case receiver.IsTrue(h.Get(headerComputedStats)):
		return ResultByTracer, true
	case h.Get(headerEncoding) != "", // the agent supports none either
		h.Get(headerFetchSite) == crossSite,
		format == decode.FormatV04 && !isMsgpack(h.Get(headerContentType)):
		return ResultUnread, true
	case s.policy.Load() == nil:
		return ResultNotWanted, true
	}
	return 0, false
}

// Count counts the spans of the request. It returns nil if the request is to be forwarded, and the response otherwise.
// Every request is forwarded, unless its body can't be read into memory.
func (t *traceRequest) Count(readErr error) receiver.Response {
	if readErr != nil {
		tooLarge := ResultTooLarge
		if t.isUncounted {
			tooLarge = t.result // the size is not the reason
		}
		return t.server.refuseUnreadable(t.BufferedRequest, readErr, int(tooLarge), int(ResultIncomplete))
	}
	if !t.isUncounted && t.server.Contain(func() { t.result = t.count() }) {
		t.result = ResultBug
	}
	t.Result = int(t.result)
	return nil
}

// refuseUnreadable returns the response to a request whose body can't be read into memory, and sets its result to
// tooLarge or incomplete. A body over a limit is streamed to the agent without headerComputedStats. If such a request
// can be the retry of a counted one, the agent would count it again. The response then closes the connection, so that
// the tracer retries. An incomplete body gets the agent's own response.
func (s *Server) refuseUnreadable(
	r *receiver.BufferedRequest, err error, tooLarge, incomplete int,
) receiver.Response {
	hasNoRoom, isOverLimit := errors.Is(err, bodies.ErrNoRoom), errors.Is(err, bodies.ErrTooLarge)
	switch {
	case hasNoRoom && !isOverLimit && r.MayBeRetry():
		r.Result = tooLarge
		s.Log.Write(slog.LevelWarn, "no memory for a request that may be a retry, so its connection is closed; "+
			"raise --apm-max-body-bytes, or check whether the agent is slow")
		return receiver.CloseConnection
	case hasNoRoom:
		r.Result = tooLarge
		return func(w http.ResponseWriter) error {
			s.streamRest(w, r.HTTP, r.Body)
			return nil
		}
	}
	r.Result = incomplete
	return func(w http.ResponseWriter) error {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			http.Error(w, "the request did not arrive completely in time", http.StatusRequestTimeout)
		} else {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
		return nil
	}
}

// count counts the spans of the request, and returns the result.
func (t *traceRequest) count() Result {
	s := t.server
	policy := s.policy.Load()
	if policy == nil {
		return ResultNotWanted
	}
	c := <-s.counting
	defer func() { s.counting <- c }()
	defer c.Release()
	body := t.Body.Bytes
	s.ParsedBytes.Add(uint64(len(body)))
	isTop := receiver.IsTrue(t.Header().Get(headerComputedTop))
	if err := c.Count(t.format, body, t.Header().Get(headerLang), isTop, policy); err != nil {
		s.Log.Write(slog.LevelWarn, "traces are left to the agent to count", "error", err, "format",
			t.format.String())
		return ResultUnread
	}
	isDuplicate, reason, ok := t.Publish(body, batchesOf(c, c.Origin(originOf(t.Header()))), sampledSpans(c))
	if ok && t.drops {
		t.dropUnsampled(c, isDuplicate)
	}
	switch {
	case isDuplicate:
		return ResultCountedBefore
	case ok:
		return ResultCounted
	case reason == admit.DropNotWanted:
		return ResultNotWanted
	}
	return ResultNoRoom
}

// sampledSpans returns the spans of sampled traces, which can become exemplars, or nil if there are none.
func sampledSpans(c *rules.Counter) iter.Seq[receiver.ForwardedSpan] {
	if len(c.SampledSpans()) == 0 {
		return nil
	}
	return func(yield func(receiver.ForwardedSpan) bool) {
		for _, sampled := range c.SampledSpans() {
			s := receiver.ForwardedSpan{Batch: int(sampled.Batch), Index: int(sampled.Index)}
			if s.TraceHigh, s.TraceLow, s.Span = c.IDs(sampled); !yield(s) {
				return
			}
		}
	}
}

// batchesOf returns the batches of a counted body, each with its origin.
func batchesOf(c *rules.Counter, origin span.Origin) iter.Seq2[span.Origin, *span.Batch] {
	origin.Normalize()
	return func(yield func(span.Origin, *span.Batch) bool) {
		for baseService, batch := range c.Batches {
			if origin.Service = baseService; !yield(origin, batch) {
				return
			}
		}
	}
}

// dropUnsampled removes unsampled traces from the forwarded body. It adds their number to the header fields in which
// tracers report dropped traces to the agent. A retry reports the same number again, because the agent has not accepted
// the first attempt, but the daemon's own counters count it once.
func (t *traceRequest) dropUnsampled(c *rules.Counter, isDuplicate bool) {
	sampled, cutTraces, cutSpans := unsampled.Cut(c.Decoded())
	if cutTraces == 0 {
		return
	}
	counters := &t.server.counters
	if !isDuplicate {
		counters.unsampledTraces.Add(uint64(cutTraces))
		counters.unsampledSpans.Add(uint64(cutSpans))
	}
	counters.savedBytes.Add(uint64(len(t.Body.Bytes) - len(sampled)))
	t.sampled = sampled
	h := t.Header()
	add(h, headerDroppedTraces, cutTraces)
	add(h, headerDroppedSpans, cutSpans)
	if h.Get(headerTraceCount) != "" {
		add(h, headerTraceCount, -cutTraces)
	}
}

// Outbound returns the request to forward, with headerComputedStats if it is counted.
func (t *traceRequest) Outbound() receiver.OutboundRequest {
	message := t.Body.Bytes
	if t.IsCounted {
		t.Header().Set(headerComputedStats, "true")
		if t.sampled != nil {
			message = t.sampled
		}
	}
	return outbound(t.BufferedRequest, message)
}

func (t *traceRequest) Translate(from *http.Response, err error) receiver.Response {
	return t.server.translate(t.BufferedRequest, from, err)
}

// outbound returns the request to forward with a message.
func outbound(r *receiver.BufferedRequest, message []byte) receiver.OutboundRequest {
	setContainer(containerOf(r), r.Header())
	receiver.RemoveHopByHop(r.Header())
	return receiver.OutboundRequest{
		Method: r.HTTP.Method, Target: r.HTTP.URL.RequestURI(), Header: r.Header(), Message: message,
	}
}
