package datadog

import (
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"os"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// job is a request with traces, whose body is held until the agent has it.
type job struct {
	*door.Held
	server    *Server
	format    decode.Format
	drops     bool // the traces that sampling threw away
	isDecided bool // whether it is counted, or that nobody counts it here
	result    Result
	left      []byte // what goes on of its body, where that is not all
}

// leaves says which requests are handed on without a look at their bodies.
func (s *Server) leaves(format decode.Format, h header) (Result, bool) {
	switch {
	case door.IsTrue(h.Get(headerComputedStats)):
		return ResultByTracer, true
	case h.Get(headerEncoding) != "", // the agent does not know of any either
		h.Get(headerFetchSite) == crossSite,
		format == decode.FormatV04 && !isMsgpack(h.Get(headerContentType)):
		return ResultUnread, true
	case s.policy.Load() == nil:
		return ResultNotWanted, true
	}
	return ResultAgentAway, false // until there is a connection
}

// isMsgpack says whether the agent takes a body of that type for msgpack.
func isMsgpack(contentType string) bool {
	if contentType == mediaMsgpack { // as nearly all write it
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == mediaMsgpack
}

// Read has a request go on whose body is here.
func (j *job) Read(broken error) *door.Reply {
	j.Result = int(j.result)
	tooLarge := ResultTooLarge
	if j.isDecided {
		tooLarge = j.result // nobody would have counted it
	}
	return j.notRead(broken, int(tooLarge), int(ResultIncomplete))
}

// notRead is the reply to a request whose body could not be held: one that finds no room streams
// through, and one that breaks off is answered as the agent does it.
func (j *job) notRead(broken error, tooLarge, incomplete int) *door.Reply {
	switch {
	case broken == nil:
		return nil
	case errors.Is(broken, bodies.ErrNoRoom):
		j.Result = tooLarge
		return &door.Reply{Write: func(w http.ResponseWriter) error {
			j.server.streamJoined(w, j.HTTP, j.Body)
			return nil
		}}
	}
	j.Result = incomplete
	return &door.Reply{Write: func(w http.ResponseWriter) error {
		if errors.Is(broken, os.ErrDeadlineExceeded) {
			http.Error(w, "timeout", http.StatusRequestTimeout)
		} else {
			http.Error(w, broken.Error(), http.StatusBadRequest)
		}
		return nil
	}}
}

// Begin counts the body now that there is a connection to the agent, and not before: a request
// that nobody takes would be counted, and once more when its tracer tries again. It is done before
// the header is written, so that it can be marked.
func (j *job) Begin() door.Parcel {
	if !j.isDecided {
		j.result = j.count()
		j.Result = int(j.result)
	}
	message := j.Body.Bytes
	if j.IsCounted() {
		j.Fields.Set(headerComputedStats, "true")
		if j.left != nil {
			message = j.left
		}
	}
	identifyIn(j.Conn, &j.Fields)
	j.Fields.Keep(http1.IsForwarded)
	return door.Parcel{Method: j.Method, Target: j.Target, Fields: j.Fields, Message: message}
}

// Answer hands back what the agent has answered. A refusal, or an answer that breaks off, is as good
// as none: its tracer may try again.
func (j *job) Answer(a *door.Answer) *door.Reply {
	j.server.noteAgentState(a.Field)
	isTaken := a.Status/100 == 2
	return &door.Reply{Write: a.HandBack, IsFinal: isTaken, IsTaken: isTaken}
}

// Unanswered ends the tracer's connection: that is what it would see without us. Some tracers try
// again after that and never after an answer, be it a 502.
func (j *job) Unanswered(err error) *door.Reply {
	j.server.noteFailed(err)
	return &door.Reply{}
}

func (s *Server) noteFailed(err error) {
	s.counters.failed.Add(1)
	s.Log.Write(slog.LevelWarn, "the agent did not answer a tracer's request, whose connection is closed",
		"error", err)
}
