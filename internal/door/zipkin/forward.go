package zipkin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/destination"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// Begin says what goes on: what came.
func (r *report) Begin() door.Parcel {
	named := r.Fields.Get("Connection")
	r.Fields.Keep(func(name string) bool {
		return http1.IsForwarded(name) && name != "Accept-Encoding" && !http1.IsNamed(named, name)
	})
	return door.Parcel{
		Method: http.MethodPost, Target: strings.TrimSuffix(r.server.config.Forward.Base, path) + path,
		Fields: r.Fields, Message: r.Body.Bytes,
	}
}

// Answer hands back what the destination has answered.
func (r *report) Answer(from *door.Answer) *door.Reply {
	said, err := from.ReadAll(destination.MaxAnswer)
	if err != nil && !errors.Is(err, door.ErrLongAnswer) {
		return r.Unanswered(err)
	}
	became, s := door.OutcomeRefused, r.server
	switch status := from.Status; {
	case status/100 == 2:
		became = door.OutcomeTaken
	case status/100 == 5, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		became = door.OutcomeLater
	}
	if became == door.OutcomeTaken {
		s.onward.Note(became, "")
	} else {
		why := fmt.Sprintf("%d %s: %.200q", from.Status, http.StatusText(from.Status), said)
		s.onward.Note(became, why)
		s.Log.Write(slog.LevelWarn, "the destination of Zipkin did not take a request", "answer", why)
	}
	return r.say(from.Status, string(said), from.Field("Content-Type"))
}

// Unanswered is the reply where the destination has not answered.
func (r *report) Unanswered(err error) *door.Reply {
	s := r.server
	if r.HasLeft() {
		s.onward.Note(door.OutcomeLeft, "")
		return &door.Reply{} // nobody reads it
	}
	why := s.config.Forward.Advise(err)
	s.onward.Note(door.OutcomeAway, why.Error())
	s.Log.Write(slog.LevelWarn, "the destination of Zipkin did not answer", "error", why)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return r.say(http.StatusGatewayTimeout, "the destination did not answer in time", "text/plain")
	}
	return r.say(http.StatusServiceUnavailable, "the destination does not answer", "text/plain")
}
