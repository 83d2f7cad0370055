package datadog

import (
	"errors"
	"mime"
	"net/http"
	"os"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
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

// Answer hands back what the agent has answered. A refusal, or an answer that breaks off, is as good
// as none: its tracer may try again.
func (j *job) Answer(a *door.Answer) *door.Reply {
	j.server.agentState.note(a.Field)
	isTaken := a.Status/100 == 2
	return &door.Reply{Write: a.HandBack, IsFinal: isTaken}
}

// Unanswered ends the tracer's connection: that is what it would see without us. Some tracers try
// again after that and never after an answer, be it a 502.
func (j *job) Unanswered(err error) *door.Reply {
	j.server.noteFailed(err)
	return &door.Reply{}
}
