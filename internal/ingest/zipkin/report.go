package zipkin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/destination"
)

// path is the endpoint for spans in Zipkin's API v2.
const path = "/api/v2/spans"

// report is a request with the spans of a Zipkin reporter.
type report struct {
	*receiver.BufferedRequest
	server      *Server
	compression bodies.Compression
	mediaType   string
}

// The media types of Zipkin's API. A browser asks for permission (CORS) before it sends them to another origin, which
// the receiver never gives, so web pages can't report spans. It sends text/plain or no media type without asking.
const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/x-protobuf"
)

// classify returns the exchange for a request, or the response that refuses the request.
func (s *Server) classify(request *receiver.BufferedRequest) (receiver.Exchange, receiver.Response) {
	compression, isKnown := bodies.CompressionOf(request.Header().Get("Content-Encoding"))
	mediaType, _, _ := mime.ParseMediaType(request.Header().Get("Content-Type"))
	r := &report{request, s, compression, mediaType}
	switch {
	case request.HTTP.URL.Path != path:
		return nil, r.refuse(resultRefused, http.StatusNotFound,
			"unknown path; send spans to Zipkin's API v2, POST "+path+"; v1 is not supported")
	case request.HTTP.Method != http.MethodPost:
		return nil, r.refuse(resultRefused, http.StatusMethodNotAllowed, "only POST is supported")
	case !isKnown:
		return nil, r.refuse(resultRefused, http.StatusUnsupportedMediaType,
			"unsupported compression; use none, or "+bodies.Compressions)
	case mediaType != mediaJSON && mediaType != mediaProtobuf:
		return nil, r.refuse(resultRefused, http.StatusUnsupportedMediaType,
			"the Content-Type must be "+mediaJSON+" or "+mediaProtobuf)
	}
	return r, nil
}

// Count counts the spans of the report. It returns nil if the report is to be forwarded, and the response otherwise. A
// report that can't be counted is forwarded anyway, unless its body is incomplete or too large.
func (r *report) Count(readErr error) receiver.Response {
	if readErr != nil {
		return r.refuseUnreadable(readErr, resultIncomplete)
	}
	var refusal receiver.Response
	if panicked := r.server.CatchPanic(func() { refusal = r.count() }); panicked {
		refusal = r.refuse(resultBug, http.StatusInternalServerError, "internal error; see the log of spanstatsd")
	}
	switch {
	case r.server.config.Forward.IsSet() && r.Result != resultTooLarge:
		return nil
	case refusal != nil:
		return refusal
	}
	return respond(http.StatusAccepted, "", "")
}

// count counts the spans and sets the result of the report. It returns a refusal if the spans can't be counted.
func (r *report) count() (refusal receiver.Response) {
	s := r.server
	w, message := <-s.workers, r.Body.Bytes
	defer func() { s.workers <- w }()
	defer w.counter.Release()
	if r.compression != bodies.Plain {
		plain, err := w.decompressor.Decompress(message, r.compression, &s.Bodies)
		defer plain.Release()
		if message = plain.Bytes; err != nil {
			return r.refuseUnreadable(err, resultUnread)
		}
	}
	s.ParsedBytes.Add(uint64(len(message)))
	decode := w.decoder.JSON
	if r.mediaType == mediaProtobuf {
		decode = w.decoder.Protobuf
	}
	if err := w.counter.CountBy(decode, message, s.policy); err != nil {
		s.Log.Write(slog.LevelWarn, "spans of Zipkin can't be read", append(r.Conn.LogAttributes(), "error", err)...)
		return r.refuse(resultUnread, http.StatusBadRequest, err.Error())
	}
	isDuplicate, reason, ok := r.Publish(message, w.counter.Batches, w.forwardedSpans)
	switch {
	case isDuplicate:
		r.Result = resultCountedBefore
	case ok:
		r.Result = resultCounted
	case reason == admit.DropNotWanted:
		r.Result = resultNotWanted
	case reason == admit.DropBatchTooLarge:
		return r.refuse(resultTooMany, http.StatusRequestEntityTooLarge, "the request has more spans than "+
			"--ring-slots; configure smaller batches in the reporter, or raise it")
	default:
		// Admission does not count these spans as dropped, because most senders retry. Zipkin reporters do not.
		for _, batch := range w.counter.Batches {
			s.config.Admit.Refuse(uint64(len(batch.Snapshots)))
		}
		return r.refuse(resultNoRoom, http.StatusServiceUnavailable,
			"the daemon can't count these spans at the moment: "+reason.String())
	}
	return nil
}

// forwardedSpans iterates over the counted spans. They can become exemplars, since every report is forwarded.
func (w *worker) forwardedSpans(yield func(receiver.ForwardedSpan) bool) {
	request := w.counter.Request()
	for s := range w.counter.Counted {
		extra := &request.Extras[s.Span]
		if !yield(receiver.ForwardedSpan{
			Batch: s.Batch, Index: s.At, TraceHigh: extra.TraceHigh, TraceLow: extra.TraceLow,
			Span: request.Spans[s.Span].ID,
		}) {
			return
		}
	}
}

// refuseUnreadable returns the response to a report that can't be read or decompressed. result is the result if the
// cause is neither a limit on memory nor the maximum body size.
func (r *report) refuseUnreadable(err error, result int) receiver.Response {
	switch {
	case errors.Is(err, bodies.ErrTooLarge):
		return r.refuse(resultTooLarge, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more "+
			"than the maximum of %d bytes; configure smaller batches in the reporter, or raise "+
			"--zipkin-max-body", r.server.config.MaxBody))
	case errors.Is(err, bodies.ErrNoRoom):
		return r.refuse(resultBusy, http.StatusServiceUnavailable, "all memory for requests is in use; raise "+
			"--zipkin-max-body-bytes if this persists")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return r.refuse(result, http.StatusRequestTimeout, "the request did not arrive completely in time")
	}
	return r.refuse(result, http.StatusBadRequest, err.Error())
}

// refuse sets the result of the report, and returns a response with an HTTP status and a message.
func (r *report) refuse(result, status int, message string) receiver.Response {
	r.Result = result
	return respond(status, message, "text/plain; charset=utf-8")
}

// respond returns a response with an HTTP status, a body and its content type, which can be "".
func respond(status int, body, media string) receiver.Response {
	return func(w http.ResponseWriter) error {
		h := w.Header()
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if media != "" {
			h.Set("Content-Type", media)
		}
		if status == http.StatusMethodNotAllowed {
			h.Set("Allow", http.MethodPost)
		}
		w.WriteHeader(status)
		_, err := w.Write([]byte(body))
		return err //nolint:wrapcheck // the server ignores its text
	}
}

// Outbound returns the request to forward, with an unchanged body.
func (r *report) Outbound() receiver.OutboundRequest {
	h := r.Header()
	receiver.RemoveConnectionOptions(h)
	receiver.RemoveHopByHop(h)
	h.Del("Accept-Encoding")
	return receiver.OutboundRequest{
		Method: http.MethodPost, Target: strings.TrimSuffix(r.server.config.Forward.Path(), path) + path,
		Header: h, Message: r.Body.Bytes,
	}
}

// Translate returns the upstream's response to the sender, or an error response if there is none.
func (r *report) Translate(response *http.Response, err error) receiver.Response {
	if err != nil {
		return r.refuseUnanswered(err)
	}
	body, err := receiver.ReadResponse(response, destination.MaxAnswer)
	if err != nil && !errors.Is(err, receiver.ErrLongResponse) {
		return r.refuseUnanswered(err)
	}
	outcome, s := receiver.OutcomeRefused, r.server
	switch status := response.StatusCode; {
	case status/100 == 2:
		outcome = receiver.OutcomeAccepted
	case status/100 == 5, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		outcome = receiver.OutcomeRetryable
	}
	if outcome == receiver.OutcomeAccepted {
		s.forwards.Note(outcome, "")
	} else {
		answer := fmt.Sprintf("%d %s: %.200q", response.StatusCode, http.StatusText(response.StatusCode), body)
		s.forwards.Note(outcome, answer)
		s.Log.Write(slog.LevelWarn, "the --zipkin-forward destination rejected a request", "answer", answer)
	}
	return respond(response.StatusCode, string(body), response.Header.Get("Content-Type"))
}

// refuseUnanswered returns the response to a report without a complete response of the upstream. It closes the
// connection if the sender has canceled the request.
func (r *report) refuseUnanswered(err error) receiver.Response {
	s := r.server
	if r.IsCanceled() {
		s.forwards.Note(receiver.OutcomeClientGone, "")
		return receiver.CloseConnection
	}
	advice := s.config.Forward.Advise(err)
	s.forwards.Note(receiver.OutcomeUnreachable, advice.Error())
	s.Log.Write(slog.LevelWarn, "the --zipkin-forward destination did not respond", "error", advice)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return respond(http.StatusGatewayTimeout, "forward request: the destination did not respond in "+
			"time", "text/plain")
	}
	return respond(http.StatusServiceUnavailable, "forward request: the destination does not respond", "text/plain")
}
