package zipkin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
)

// path is that of Zipkin's API v2.
const path = "/api/v2/spans"

// report is a request with spans.
type report struct {
	*door.Held
	server  *Server
	packing bodies.Packing
}

// Open makes a report of a request, or refuses it.
func (s *Server) Open(h *door.Held) (door.Request, *door.Reply) {
	r, isKnown := &report{Held: h, server: s}, false
	r.packing, isKnown = bodies.PackingOf(h.Fields.Get("Content-Encoding"))
	switch {
	case h.Path != path:
		return nil, r.refuse(resultRefused, http.StatusNotFound,
			"there is no such path here: spans are taken by Zipkin's API v2, POST "+path+"; v1 is not")
	case h.Method != http.MethodPost:
		return nil, r.refuse(resultRefused, http.StatusMethodNotAllowed, "only POST is taken here")
	case !isKnown:
		return nil, r.refuse(resultRefused, http.StatusUnsupportedMediaType,
			"this compression is not known here; take none, or "+bodies.Packings)
	}
	return r, nil
}

// Read has a report counted. What can't be counted goes on all the same.
func (r *report) Read(broken error) *door.Reply {
	if broken != nil {
		return r.notRead(broken, resultIncomplete)
	}
	no := r.count()
	switch {
	case r.server.config.Forward.IsSet() && r.Result != resultTooLarge:
		return nil
	case no != nil:
		return no
	}
	return r.say(http.StatusAccepted, "", "")
}

// count counts the spans of a report, or says why none is counted.
func (r *report) count() (no *door.Reply) {
	s := r.server
	defer func() {
		if p := recover(); p != nil {
			no = r.refuse(resultBug, http.StatusInternalServerError, "a defect of spanstatsd: see its log")
			s.Log.Bug(p)
		}
	}()
	w, message := <-s.workers, r.Body.Bytes
	defer func() { w.counter.Release(); s.workers <- w }()
	if r.packing != bodies.Plain {
		plain, err := w.inflater.Inflate(message, r.packing, &s.Bodies)
		defer plain.Release()
		if message = plain.Bytes; err != nil {
			return r.notRead(err, resultUnread)
		}
	}
	s.Walked.Add(uint64(len(message)))
	decode := w.decoder.JSON
	if strings.HasPrefix(r.Fields.Get("Content-Type"), "application/x-protobuf") {
		decode = w.decoder.Protobuf
	}
	if err := w.counter.CountBy(decode, message, s.policy); err != nil {
		s.Log.Write(slog.LevelWarn, "spans of Zipkin can't be read", append(r.Conn.Who(), "error", err)...)
		return r.refuse(resultUnread, http.StatusBadRequest, err.Error())
	}
	before, why, ok := r.Publish(message, w.counter.Batches, w.goingOn)
	switch {
	case before:
		r.Result = resultCountedBefore
	case ok:
		r.Result = resultCounted
	case why == admit.DropNotWanted:
		r.Result = resultNotWanted
	case why == admit.DropBatchTooLarge:
		return r.refuse(resultTooMany, http.StatusRequestEntityTooLarge, "the request has more spans than "+
			"the rings have slots: have fewer reported at a time, or raise --ring-slots")
	default:
		return r.refuse(resultNoRoom, http.StatusServiceUnavailable,
			"there is no room to count these spans just now: "+why.String())
	}
	return nil
}

// goingOn visits the spans that were counted: they may become exemplars.
func (w *worker) goingOn(yield func(door.Going) bool) {
	r := w.counter.Request()
	for s := range w.counter.Counted {
		of := &r.Places[s.Span]
		going := door.Going{Batch: s.Batch, At: s.At, TraceHigh: of.TraceHigh, TraceLow: of.TraceLow}
		if going.Span = r.Spans[s.Span].ID; !yield(going) {
			return
		}
	}
}

// notRead is the reply to a report that is not whole, or can't be inflated.
func (r *report) notRead(err error, result int) *door.Reply {
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

func (r *report) refuse(result, status int, said string) *door.Reply {
	r.Result = result
	return r.say(status, said, "text/plain; charset=utf-8")
}

// say has a sender answered. A success ends the matter; after anything else a Collector's exporter
// sends the same again.
func (r *report) say(status int, said, media string) *door.Reply {
	return &door.Reply{IsFinal: status/100 == 2, Write: func(w http.ResponseWriter) error {
		h := w.Header()
		h.Set("Content-Length", strconv.Itoa(len(said)))
		if media != "" {
			h.Set("Content-Type", media)
		}
		if status == http.StatusMethodNotAllowed {
			h.Set("Allow", http.MethodPost)
		}
		w.WriteHeader(status)
		if _, err := w.Write([]byte(said)); err != nil {
			return err //nolint:wrapcheck // net/http's own; nobody reads it
		}
		return http.NewResponseController(w).Flush() //nolint:wrapcheck // the same
	}}
}
