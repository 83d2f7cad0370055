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
	server         *Server
	format         decode.Format
	dropsUnsampled bool   // whether unsampled traces are not forwarded
	isUncounted    bool   // whether the request must not be counted, because of its header or the agent's features
	traceResult    Result // result of counting; set from the start if isUncounted
	sampledBody    []byte // body without unsampled traces; nil if the whole body is forwarded
}

// newTraceRequest returns a traceRequest for r. format is the format of the body.
func (s *Server) newTraceRequest(r *receiver.BufferedRequest, format decode.Format) *traceRequest {
	result, isUncounted := s.resultIfUncounted(format, r.Header())
	return &traceRequest{
		BufferedRequest: r, server: s, format: format, dropsUnsampled: s.dropsUnsampled.Load(),
		isUncounted: isUncounted, traceResult: result,
	}
}

// resultIfUncounted returns true, and the result, if the spans of a trace request must not be counted: the tracer
// has counted them, the daemon can't read the body, or it has no rules for counting. format is the format of the
// body, and header the header of the request.
func (s *Server) resultIfUncounted(format decode.Format, header http.Header) (result Result, isUncounted bool) {
	isCountedByTracer := receiver.IsTrue(header.Get(headerComputedStats))
	hasRules := s.policy.Load() != nil
	switch {
	case isCountedByTracer:
		return ResultByTracer, true
	case !isReadable(format, header):
		return ResultUnread, true
	case !hasRules:
		return ResultNotWanted, true
	}
	return 0, false
}

// isReadable reports whether the daemon reads the body of a trace request. It reads no compressed body, no body from
// a web page of another site, and no JSON. Only a body of FormatV04 can be JSON.
func isReadable(format decode.Format, header http.Header) bool {
	isCompressed := header.Get(headerEncoding) != ""
	isFromOtherSite := header.Get(headerFetchSite) == crossSite
	if isCompressed || isFromOtherSite {
		return false
	}
	canBeJSON := format == decode.FormatV04
	return !canBeJSON || isMsgpack(header.Get(headerContentType))
}

// Handle counts the spans of the request, unless isUncounted is set. It returns nil: the caller then forwards the
// request to the agent, even if the spans could not be counted. If readErr, the error of reading the body, is not nil,
// Handle returns a response instead.
func (t *traceRequest) Handle(readErr error) receiver.Response {
	if readErr != nil {
		return t.refuseUnreadable(readErr)
	}
	if !t.isUncounted {
		hasPanicked := t.server.CatchPanic(func() { t.traceResult = t.count() })
		if hasPanicked {
			t.traceResult = ResultBug
		}
	}
	t.Result = int(t.traceResult)
	return nil
}

// refuseUnreadable returns the response to the request, whose body can't be read into memory because of readErr.
func (t *traceRequest) refuseUnreadable(readErr error) receiver.Response {
	resultIfTooLarge := ResultTooLarge
	if t.isUncounted {
		resultIfTooLarge = t.traceResult // a smaller request would not be counted either
	}
	return t.server.refuseUnreadable(t.BufferedRequest, readErr, resultIfTooLarge.resultIndex(), ResultIncomplete.resultIndex())
}

// refuseUnreadable returns the response to a request whose body can't be read into memory because of readErr. It
// sets r.Result to resultIfTooLarge if the body exceeds a size or memory limit, and otherwise to resultIfIncomplete.
func (s *Server) refuseUnreadable(
	r *receiver.BufferedRequest, readErr error, resultIfTooLarge, resultIfIncomplete int,
) receiver.Response {
	isOverLimit := errors.Is(readErr, bodies.ErrNoRoom) // also for ErrTooLarge, which wraps it
	if isOverLimit {
		r.Result = resultIfTooLarge
		return s.streamOrClose(r, readErr)
	}
	r.Result = resultIfIncomplete
	return func(w http.ResponseWriter) error {
		if errors.Is(readErr, os.ErrDeadlineExceeded) {
			http.Error(w, "the request did not arrive completely in time", http.StatusRequestTimeout)
		} else {
			http.Error(w, readErr.Error(), http.StatusBadRequest)
		}
		return nil
	}
}

// streamOrClose returns the response to a request whose body exceeds a size or memory limit. The response streams
// the request to the agent, which counts its spans. If the daemon may have counted the same spans before, the
// response closes the connection instead, and the tracer retries later.
func (s *Server) streamOrClose(r *receiver.BufferedRequest, readErr error) receiver.Response {
	isTooLarge := errors.Is(readErr, bodies.ErrTooLarge)
	mayBeCounted := !isTooLarge && r.MayBeRetry() // the daemon never counts a body that is too large
	if mayBeCounted {
		s.Log.Write(slog.LevelWarn, "no memory for a request that may be a retry, so its connection is closed; "+
			"raise --apm-max-body-bytes, or check whether the agent is slow")
		return receiver.CloseConnection
	}
	return func(w http.ResponseWriter) error {
		s.streamRest(w, r.HTTP, r.Body)
		return nil
	}
}

// count decodes the body, counts its spans, and returns the result. If the body is not valid, it logs an error, and
// the agent counts the spans.
func (t *traceRequest) count() Result {
	s := t.server
	policy := s.policy.Load()
	if policy == nil { // the agent's features have changed since the header was read
		return ResultNotWanted
	}
	counter := <-s.idleCounters
	defer func() { s.idleCounters <- counter }()
	defer counter.Release()
	if err := t.decode(counter, policy); err != nil {
		s.Log.Write(slog.LevelWarn, "traces are left to the agent to count", "error", err, "format",
			t.format.String())
		return ResultUnread
	}
	return t.publish(counter)
}

// decode decodes the body into counter. policy contains the agent's rules for counting spans.
func (t *traceRequest) decode(counter *rules.Counter, policy *rules.Policy) error {
	body := t.Body.Bytes
	t.server.ParsedBytes.Add(uint64(len(body)))
	header := t.Header()
	language := header.Get(headerLang)
	hasTopLevelMarks := receiver.IsTrue(header.Get(headerComputedTop))
	return counter.Count(t.format, body, language, hasTopLevelMarks, policy) //nolint:wrapcheck // its own words
}

// publish publishes the spans that counter has read from the body, unless an equal body was published before. If the
// spans are counted now or were counted before, and t.dropsUnsampled is true, it also removes unsampled traces from the
// body to forward.
func (t *traceRequest) publish(counter *rules.Counter) Result {
	origin := counter.Origin(originOf(t.Header()))
	outcome, dropReason := t.Publish(t.Body.Bytes, batchesOf(counter, origin), sampledSpans(counter))
	if outcome == receiver.NotPublished {
		if dropReason == admit.DropNotWanted {
			return ResultNotWanted
		}
		return ResultNoRoom
	}
	isDuplicate := outcome == receiver.PublishedBefore
	if t.dropsUnsampled {
		t.removeUnsampled(counter, isDuplicate)
	}
	if isDuplicate {
		return ResultCountedBefore
	}
	return ResultCounted
}

// sampledSpans iterates over the counted spans of sampled traces, with their trace and span IDs. Metrics can refer
// to such a span as an exemplar. sampledSpans returns nil if there are no such spans.
func sampledSpans(counter *rules.Counter) iter.Seq[receiver.ForwardedSpan] {
	if len(counter.SampledSpans()) == 0 {
		return nil
	}
	return func(yield func(receiver.ForwardedSpan) bool) {
		for _, sampled := range counter.SampledSpans() {
			traceHigh, traceLow, spanID := counter.IDs(sampled)
			forwarded := receiver.ForwardedSpan{
				Batch: int(sampled.Batch), Index: int(sampled.Index),
				TraceHigh: traceHigh, TraceLow: traceLow, Span: spanID,
			}
			if !yield(forwarded) {
				return
			}
		}
	}
}

// batchesOf iterates over the counted spans of a body, grouped in one batch per base service, the name of the
// process that created the spans. Each batch comes with a copy of origin in which Service is the base service.
func batchesOf(counter *rules.Counter, origin span.Origin) iter.Seq2[span.Origin, *span.Batch] {
	origin.Normalize()
	return func(yield func(span.Origin, *span.Batch) bool) {
		for baseService, batch := range counter.Batches {
			origin.Service = baseService
			if !yield(origin, batch) {
				return
			}
		}
	}
}

// removeUnsampled removes unsampled traces from the body to forward, and tells the agent their number in the
// header. It also counts the removed traces and spans, unless the request is a duplicate.
func (t *traceRequest) removeUnsampled(counter *rules.Counter, isDuplicate bool) {
	remaining, removedTraces, removedSpans := unsampled.Cut(counter.Decoded())
	if removedTraces == 0 {
		return
	}
	counters := &t.server.counters
	if !isDuplicate {
		counters.unsampledTraces.Add(uint64(removedTraces))
		counters.unsampledSpans.Add(uint64(removedSpans))
	}
	counters.savedBytes.Add(uint64(len(t.Body.Bytes) - len(remaining)))
	t.sampledBody = remaining
	reportRemoved(t.Header(), removedTraces, removedSpans)
}

// reportRemoved tells the agent in the request header that traces, with the given number of spans, were removed
// from the body. It raises the numbers of dropped traces and spans, and lowers the number of traces in the body.
func reportRemoved(h http.Header, traces, spans int) {
	addToNumber(h, headerDroppedTraces, traces)
	addToNumber(h, headerDroppedSpans, spans)
	if h.Get(headerTraceCount) != "" {
		addToNumber(h, headerTraceCount, -traces)
	}
}

// Outbound returns the request to forward to the agent. If the spans were counted, the header tells the agent not
// to count them again, and unsampled traces may be missing from the body.
func (t *traceRequest) Outbound() receiver.OutboundRequest {
	message := t.Body.Bytes
	if t.IsCounted {
		t.Header().Set(headerComputedStats, "true")
		if t.sampledBody != nil {
			message = t.sampledBody
		}
	}
	return newOutbound(t.BufferedRequest, message)
}

func (t *traceRequest) Translate(from *http.Response, err error) receiver.Response {
	return t.server.respondLikeAgent(t.BufferedRequest, from, err)
}

// newOutbound returns a request to the agent with the method, the URL and the header of r, and message as the body.
// It adds the container ID of the sender, and removes the fields that concern only the sender's connection.
func newOutbound(r *receiver.BufferedRequest, message []byte) receiver.OutboundRequest {
	header := r.Header()
	setContainer(containerOf(r), header)
	receiver.RemoveHopByHop(header)
	return receiver.OutboundRequest{
		Method: r.HTTP.Method, Target: r.HTTP.URL.RequestURI(), Header: header, Message: message,
	}
}
