package zipkin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// report is a request with spans.
type report struct {
	*receiver.BufferedRequest
	server      *Server
	compression bodies.Compression
}

// classify returns the report of a request, or refuses the request.
func (s *Server) classify(request *receiver.BufferedRequest) (receiver.Exchange, receiver.Response) {
	compression, isKnown := bodies.CompressionOf(request.Header().Get("Content-Encoding"))
	r := &report{request, s, compression}
	switch {
	case request.HTTP.URL.Path != path:
		return nil, r.refuse(resultRefused, http.StatusNotFound,
			"there is no such path here: spans are taken by Zipkin's API v2, POST "+path+"; v1 is not")
	case request.HTTP.Method != http.MethodPost:
		return nil, r.refuse(resultRefused, http.StatusMethodNotAllowed, "only POST is taken here")
	case !isKnown:
		return nil, r.refuse(resultRefused, http.StatusUnsupportedMediaType,
			"this compression is not known here; take none, or "+bodies.Compressions)
	}
	return r, nil
}

// Count counts the spans. A report that can't be counted is forwarded anyway, unless it exceeds the limits.
func (r *report) Count(readErr error) receiver.Response {
	if readErr != nil {
		return r.notRead(readErr, resultIncomplete)
	}
	var refusal receiver.Response
	if r.server.Contain(func() { refusal = r.count() }) {
		refusal = r.refuse(resultBug, http.StatusInternalServerError, "a defect of spanstatsd: see its log")
	}
	switch {
	case r.server.config.Forward.IsSet() && r.Result != resultTooLarge:
		return nil
	case refusal != nil:
		return refusal
	}
	return respond(http.StatusAccepted, "", "")
}

// count counts the spans, or returns why they can't be counted.
func (r *report) count() (refusal receiver.Response) {
	s := r.server
	w, message := <-s.workers, r.Body.Bytes
	defer func() { s.workers <- w }()
	defer w.counter.Release()
	if r.compression != bodies.Plain {
		plain, err := w.decompressor.Decompress(message, r.compression, &s.Bodies)
		defer plain.Release()
		if message = plain.Bytes; err != nil {
			return r.notRead(err, resultUnread)
		}
	}
	s.ParsedBytes.Add(uint64(len(message)))
	decode := w.decoder.JSON
	if strings.HasPrefix(r.Header().Get("Content-Type"), "application/x-protobuf") {
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
			"the rings have slots: have fewer reported at a time, or raise --ring-slots")
	default:
		// Admission leaves these spans out of the books, because senders usually retry. Reporters do not.
		for _, batch := range w.counter.Batches {
			s.config.Admit.Refuse(uint64(len(batch.Snapshots)))
		}
		return r.refuse(resultNoRoom, http.StatusServiceUnavailable,
			"there is no room to count these spans just now: "+reason.String())
	}
	return nil
}

// forwardedSpans visits the counted spans, which may become exemplars.
func (w *worker) forwardedSpans(yield func(receiver.ForwardedSpan) bool) {
	request := w.counter.Request()
	for s := range w.counter.Counted {
		place := &request.Extras[s.Span]
		if !yield(receiver.ForwardedSpan{
			Batch: s.Batch, Index: s.At, TraceHigh: place.TraceHigh, TraceLow: place.TraceLow,
			Span: request.Spans[s.Span].ID,
		}) {
			return
		}
	}
}

// notRead returns the response to a report that was not read whole, or can't be decompressed.
func (r *report) notRead(err error, result int) receiver.Response {
	switch {
	case errors.Is(err, bodies.ErrTooLarge):
		return r.refuse(resultTooLarge, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more "+
			"than the %d bytes that one may have: have fewer spans reported at a time, or raise "+
			"--zipkin-max-body", r.server.config.MaxBody))
	case errors.Is(err, bodies.ErrNoRoom):
		return r.refuse(resultBusy, http.StatusServiceUnavailable, "there is no room for this just now")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return r.refuse(result, http.StatusRequestTimeout, "the request did not come to its end in time")
	}
	return r.refuse(result, http.StatusBadRequest, err.Error())
}

// refuse sets the result of a report, and returns the response to it.
func (r *report) refuse(result, status int, said string) receiver.Response {
	r.Result = result
	return respond(status, said, "text/plain; charset=utf-8")
}

// respond returns a response with a text.
func respond(status int, said, media string) receiver.Response {
	return func(w http.ResponseWriter) error {
		h := w.Header()
		h.Set("Content-Length", strconv.Itoa(len(said)))
		if media != "" {
			h.Set("Content-Type", media)
		}
		if status == http.StatusMethodNotAllowed {
			h.Set("Allow", http.MethodPost)
		}
		w.WriteHeader(status)
		_, err := w.Write([]byte(said))
		return err //nolint:wrapcheck // the server ignores its text
	}
}

// Outbound returns the request with an unchanged body.
func (r *report) Outbound() receiver.OutboundRequest {
	h := r.Header()
	receiver.RemoveNamed(h)
	receiver.RemoveHopByHop(h)
	h.Del("Accept-Encoding")
	return receiver.OutboundRequest{
		Method: http.MethodPost, Target: strings.TrimSuffix(r.server.config.Forward.Path(), path) + path,
		Header: h, Message: r.Body.Bytes,
	}
}

// Translate returns the upstream's response.
func (r *report) Translate(from *http.Response, err error) receiver.Response {
	if err != nil {
		return r.unanswered(err)
	}
	said, err := receiver.ReadResponse(from, destination.MaxAnswer)
	if err != nil && !errors.Is(err, receiver.ErrLongResponse) {
		return r.unanswered(err)
	}
	outcome, s := receiver.OutcomeRefused, r.server
	switch status := from.StatusCode; {
	case status/100 == 2:
		outcome = receiver.OutcomeTaken
	case status/100 == 5, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		outcome = receiver.OutcomeLater
	}
	if outcome == receiver.OutcomeTaken {
		s.forwards.Note(outcome, "")
	} else {
		why := fmt.Sprintf("%d %s: %.200q", from.StatusCode, http.StatusText(from.StatusCode), said)
		s.forwards.Note(outcome, why)
		s.Log.Write(slog.LevelWarn, "the destination of Zipkin did not take a request", "answer", why)
	}
	return respond(from.StatusCode, string(said), from.Header.Get("Content-Type"))
}

// unanswered returns the response if the upstream has not responded.
func (r *report) unanswered(err error) receiver.Response {
	s := r.server
	if r.IsCanceled() {
		s.forwards.Note(receiver.OutcomeLeft, "")
		return receiver.CloseConnection
	}
	why := s.config.Forward.Advise(err)
	s.forwards.Note(receiver.OutcomeAway, why.Error())
	s.Log.Write(slog.LevelWarn, "the destination of Zipkin did not answer", "error", why)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return respond(http.StatusGatewayTimeout, "the destination did not answer in time", "text/plain")
	}
	return respond(http.StatusServiceUnavailable, "the destination does not answer", "text/plain")
}
