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

// classify checks the path, the method and the header of a request. If they are valid, it returns a report, which
// handles the request, and otherwise an error response.
func (s *Server) classify(request *receiver.BufferedRequest) (receiver.Exchange, receiver.Response) {
	compression, isSupported := bodies.CompressionOf(request.Header().Get("Content-Encoding"))
	mediaType, _, _ := mime.ParseMediaType(request.Header().Get("Content-Type"))
	r := &report{BufferedRequest: request, server: s, compression: compression, mediaType: mediaType}
	switch {
	case request.HTTP.URL.Path != path:
		return nil, r.refuse(resultRefused, http.StatusNotFound,
			"unknown path; send spans to Zipkin's API v2, POST "+path+"; v1 is not supported")
	case request.HTTP.Method != http.MethodPost:
		return nil, r.refuse(resultRefused, http.StatusMethodNotAllowed, "only POST is supported")
	case !isSupported:
		return nil, r.refuse(resultRefused, http.StatusUnsupportedMediaType,
			"unsupported compression; use none, or "+bodies.Compressions)
	case mediaType != mediaJSON && mediaType != mediaProtobuf:
		return nil, r.refuse(resultRefused, http.StatusUnsupportedMediaType,
			"the Content-Type must be "+mediaJSON+" or "+mediaProtobuf)
	}
	return r, nil
}

// Handle counts the spans of the request. It returns nil if the request is to be forwarded to the upstream, and
// otherwise the response. A request is forwarded even if its spans can't be counted, unless the body is incomplete or
// too large. readErr is the error of reading the body, or nil.
func (r *report) Handle(readErr error) receiver.Response {
	if readErr != nil {
		return r.refuseUnreadable(readErr, resultIncomplete)
	}
	var refusal receiver.Response
	hasPanicked := r.server.CatchPanic(func() { refusal = r.count() })
	if hasPanicked {
		refusal = r.refuse(resultBug, http.StatusInternalServerError, "internal error; see the log of spanstatsd")
	}
	hasUpstream := r.server.config.Forward.IsSet()
	isTooLarge := r.Result == resultTooLarge
	isForwarded := hasUpstream && !isTooLarge
	switch {
	case isForwarded: // even if refusal is set: the sender gets the upstream's response
		return nil
	case refusal != nil:
		return refusal
	}
	return respond(http.StatusAccepted, "", "")
}

// count decompresses the body, counts its spans, and sets r.Result. It returns an error response if the spans can't
// be counted, and nil otherwise.
func (r *report) count() receiver.Response {
	s := r.server
	worker := <-s.workers
	defer func() { s.workers <- worker }()
	defer worker.counter.Release()
	message := r.Body.Bytes
	if r.compression != bodies.Plain {
		plain, err := worker.decompressor.Decompress(message, r.compression, &s.Bodies)
		defer plain.Release()
		if err != nil {
			return r.refuseUnreadable(err, resultUnread)
		}
		message = plain.Bytes
	}
	s.ParsedBytes.Add(uint64(len(message)))
	return r.countMessage(message, worker)
}

// countMessage decodes a message in JSON or protobuf, counts its spans, and sets r.Result. It returns an error
// response if the spans can't be counted, and nil otherwise.
func (r *report) countMessage(message []byte, worker *worker) receiver.Response {
	s := r.server
	decode := worker.decoder.JSON
	if r.mediaType == mediaProtobuf {
		decode = worker.decoder.Protobuf
	}
	if err := worker.counter.CountBy(decode, message, s.policy); err != nil {
		s.Log.Write(slog.LevelWarn, "spans of Zipkin can't be read", append(r.Conn.LogAttributes(), "error", err)...)
		return r.refuse(resultUnread, http.StatusBadRequest, err.Error())
	}
	return r.publish(message, worker)
}

// publish publishes the spans of message, which worker has decoded, and sets r.Result. It returns an error response
// if the spans can't be published. It returns nil if they are published now, were published before in an equal
// message, or are not needed.
func (r *report) publish(message []byte, worker *worker) receiver.Response {
	outcome, dropReason := r.Publish(message, worker.counter.Batches, worker.forwardedSpans)
	switch {
	case outcome == receiver.Published:
		r.Result = resultCounted
		return nil
	case outcome == receiver.PublishedBefore:
		r.Result = resultCountedBefore
		return nil
	case dropReason == admit.DropNotWanted:
		r.Result = resultNotWanted
		return nil
	case dropReason == admit.DropBatchTooLarge:
		return r.refuse(resultTooMany, http.StatusRequestEntityTooLarge, "the request has more spans than "+
			"--ring-slots; configure smaller batches in the reporter, or raise it")
	}
	r.countDropped(worker)
	return r.refuse(resultNoRoom, http.StatusServiceUnavailable,
		"the daemon can't count these spans at the moment: "+dropReason.String())
}

// countDropped counts the spans that worker has decoded as dropped. Publish leaves that to its caller for a temporary
// error, because most senders retry. Zipkin reporters do not.
func (r *report) countDropped(worker *worker) {
	for _, batch := range worker.counter.Batches {
		r.server.config.Admit.Refuse(uint64(len(batch.Snapshots)))
	}
}

// forwardedSpans iterates over the counted spans, with their trace and span IDs, so that metrics can refer to them
// as exemplars. It is used only with an upstream, which gets every counted span.
func (w *worker) forwardedSpans(yield func(receiver.ForwardedSpan) bool) {
	request := w.counter.Request()
	for counted := range w.counter.Counted {
		spanID := request.Spans[counted.SpanIndex].ID
		trace := &request.Extras[counted.SpanIndex]
		forwarded := receiver.ForwardedSpan{
			Batch: counted.Batch, Index: counted.IndexInBatch,
			TraceHigh: trace.TraceHigh, TraceLow: trace.TraceLow, Span: spanID,
		}
		if !yield(forwarded) {
			return
		}
	}
}

// refuseUnreadable returns the error response to a request that can't be read or decompressed because of err. It
// sets r.Result, to otherResult unless err means that a size or memory limit was exceeded.
func (r *report) refuseUnreadable(err error, otherResult int) receiver.Response {
	switch {
	case errors.Is(err, bodies.ErrTooLarge):
		return r.refuse(resultTooLarge, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more "+
			"than the maximum of %d bytes; configure smaller batches in the reporter, or raise "+
			"--zipkin-max-body", r.server.config.MaxBody))
	case errors.Is(err, bodies.ErrNoRoom):
		return r.refuse(resultBusy, http.StatusServiceUnavailable, "all memory for requests is in use; raise "+
			"--zipkin-max-body-bytes if this persists")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return r.refuse(otherResult, http.StatusRequestTimeout, "the request did not arrive completely in time")
	}
	return r.refuse(otherResult, http.StatusBadRequest, err.Error())
}

// refuse sets the result of the report, and returns a response with an HTTP status and a message.
func (r *report) refuse(result, status int, message string) receiver.Response {
	r.Result = result
	return respond(status, message, "text/plain; charset=utf-8")
}

// respond returns a response with an HTTP status and a body. If contentType is "", the response has no Content-Type.
func respond(status int, body, contentType string) receiver.Response {
	return func(w http.ResponseWriter) error {
		header := w.Header()
		header.Set("Content-Length", strconv.Itoa(len(body)))
		if contentType != "" {
			header.Set("Content-Type", contentType)
		}
		if status == http.StatusMethodNotAllowed {
			header.Set("Allow", http.MethodPost)
		}
		w.WriteHeader(status)
		_, err := w.Write([]byte(body))
		return err //nolint:wrapcheck // the server ignores its text
	}
}

// Outbound returns the request to forward. Its body is the unchanged body of the report.
func (r *report) Outbound() receiver.OutboundRequest {
	header := r.Header()
	receiver.RemoveConnectionOptions(header)
	receiver.RemoveHopByHop(header)
	header.Del("Accept-Encoding")
	basePath := strings.TrimSuffix(r.server.config.Forward.Path(), path)
	return receiver.OutboundRequest{
		Method: http.MethodPost, Target: basePath + path, Header: header, Message: r.Body.Bytes,
	}
}

// Translate returns the response to the sender, a copy of the upstream's response. It returns an error response if
// err is not nil, or if the upstream's response is incomplete. It also counts the outcome of the forwarding.
func (r *report) Translate(response *http.Response, err error) receiver.Response {
	if err != nil {
		return r.refuseUnanswered(err)
	}
	body, err := receiver.ReadResponse(response, destination.MaxAnswer)
	isTooLong := errors.Is(err, receiver.ErrLongResponse) // the sender then gets an empty body
	if err != nil && !isTooLong {
		return r.refuseUnanswered(err)
	}
	r.server.recordResponse(response.StatusCode, body)
	return respond(response.StatusCode, string(body), response.Header.Get("Content-Type"))
}

// recordResponse counts a forwarded request as accepted or not, according to the HTTP status of the upstream's
// response. It logs the response if the request was not accepted.
func (s *Server) recordResponse(status int, body []byte) {
	outcome := outcomeOf(status)
	if outcome == receiver.OutcomeAccepted {
		s.forwards.Record(outcome, "")
		return
	}
	const maxShown = 200 // bytes of the body
	answer := fmt.Sprintf("%d %s: %.*q", status, http.StatusText(status), maxShown, body)
	s.forwards.Record(outcome, answer)
	s.Log.Write(slog.LevelWarn, "the --zipkin-forward destination rejected a request", "answer", answer)
}

// outcomeOf returns the outcome of a forwarded report that has a response with the given HTTP status.
func outcomeOf(status int) receiver.ForwardOutcome {
	isSuccess := status/100 == 2
	isServerError := status/100 == 5
	switch {
	case isSuccess:
		return receiver.OutcomeAccepted
	case isServerError, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return receiver.OutcomeRetryable
	}
	return receiver.OutcomeRefused
}

// refuseUnanswered returns the error response to a request for which the upstream has sent no complete response.
// err is the error of forwarding. If the sender has canceled the request, the response closes the connection
// instead.
func (r *report) refuseUnanswered(err error) receiver.Response {
	s := r.server
	if r.IsCanceled() {
		s.forwards.Record(receiver.OutcomeClientGone, "")
		return receiver.CloseConnection
	}
	errWithAdvice := s.config.Forward.Advise(err)
	s.forwards.Record(receiver.OutcomeUnreachable, errWithAdvice.Error())
	s.Log.Write(slog.LevelWarn, "the --zipkin-forward destination did not respond", "error", errWithAdvice)
	isTimeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	if isTimeout {
		return respond(http.StatusGatewayTimeout, "forward request: the destination did not respond in "+
			"time", "text/plain")
	}
	return respond(http.StatusServiceUnavailable, "forward request: the destination does not respond", "text/plain")
}
