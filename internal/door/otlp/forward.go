package otlp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/destination"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
)

// canGoOn says whether a message can go on as it came. gRPC has no JSON, and of snappy frames alone.
func (c *call) canGoOn() bool {
	return !c.server.config.Forward.IsGRPC() ||
		c.encoding != inJSON && c.packing.Of(c.message) != bodies.Snappy
}

// wrap chooses the bytes that go on: those that came, wherever the destination can read them. It
// reports false where it can read none.
func (c *call) wrap() bool {
	isGRPC := c.server.config.Forward.IsGRPC()
	c.parcel = parcel{c.message, c.packing, c.encoding}
	switch {
	case c.kept.body != nil:
		c.parcel = parcel{c.kept.body.Bytes, c.kept.packing, inProtobuf}
	case !c.canGoOn():
		c.parcel = parcel{c.protobuf, bodies.Plain, inGRPC}
		return c.protobuf != nil
	case c.encoding == inGRPC:
		c.parcel.encoding = inProtobuf
	}
	if isGRPC {
		c.parcel.encoding = inGRPC
	}
	return true
}

// unfit is the reply to a call that the destination can't read.
func (c *call) unfit() *door.Reply {
	c.server.onward.Note(door.OutcomeUnfit, "")
	return c.say(refused(http.StatusUnsupportedMediaType, signals[c.signal].name+" in JSON or in a block "+
		"of snappy can't go on to a destination that speaks gRPC; have the SDK send protobuf, or gzip"))
}

// Begin says what goes on: the message, with what the destination's protocol has around it.
func (c *call) Begin() door.Parcel {
	to, p := &c.server.config.Forward, &c.parcel
	out := door.Parcel{Method: http.MethodPost, Target: to.target(c.signal), Message: p.message}
	named := c.Fields.Get("Connection")
	c.Fields.Keep(func(name string) bool { return isForwarded(name) && !http1.IsNamed(named, name) })
	c.Fields.Set("Content-Type", mediaOf[p.encoding])
	switch {
	case to.IsGRPC():
		before := prefix(len(p.message), p.packing != bodies.Plain)
		out.Prefix = before[:]
		c.Fields.Set("Te", "trailers")
		if p.packing != bodies.Plain {
			c.Fields.Set(headerGRPCEncoding, nameInGRPC(p.packing))
		}
	case p.packing != bodies.Plain:
		c.Fields.Set("Content-Encoding", p.packing.String())
	}
	if c.IsCounted() {
		c.Fields.Set(headerComputedStats, "yes")
	}
	out.Fields = c.Fields
	return out
}

// isForwarded says whether a field of a request goes on: none that is about the connection, or
// about how the body is written, which is said anew.
func isForwarded(name string) bool {
	switch name {
	case "Content-Encoding", "Accept-Encoding":
		return false
	}
	return http1.IsForwarded(name) && !strings.HasPrefix(name, "Grpc-")
}

// Answer makes a reply of what the destination has answered, in the words of who asked.
func (c *call) Answer(from *door.Answer) *door.Reply {
	said, err := from.ReadAll(destination.MaxAnswer)
	isLong := errors.Is(err, door.ErrLongAnswer)
	if err != nil && !isLong {
		return c.Unanswered(err)
	}
	var a *reply
	switch {
	case c.parcel.encoding != inGRPC:
		a = replyOfHTTP(from, said, c.parcel.encoding, c.encoding, isLong)
	case isLong && from.Field(headerGRPCStatus) == "": // its end did not come
		return c.Unanswered(err)
	default:
		a = replyOfGRPC(from, said, c.encoding)
	}
	outcome := door.OutcomeLater
	switch {
	case a.Code == otlpanswer.OK:
		outcome = door.OutcomeTaken
	case !a.IsRetryable():
		outcome = door.OutcomeRefused
		c.server.Log.Write(slog.LevelWarn, "the destination of OTLP refused a request; its sender drops it",
			"signal", signals[c.signal].name, "answer", a.Said)
	}
	c.server.onward.Note(outcome, a.Said)
	return c.say(a)
}

// Unanswered has the SDK try again.
func (c *call) Unanswered(err error) *door.Reply {
	s := c.server
	if c.HasLeft() {
		s.onward.Note(door.OutcomeLeft, "")
		return c.say(later(0, "the request was given up")) // nobody reads it
	}
	why := s.config.Forward.Advise(err)
	s.onward.Note(door.OutcomeAway, why.Error())
	s.Log.Write(slog.LevelWarn, "the destination of OTLP did not answer; its senders are told to try again",
		"error", why)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return c.say(refuse(0, otlpanswer.DeadlineExceeded, "the destination did not answer in time"))
	}
	return c.say(later(0, "the destination does not answer"))
}

// What a collector answers goes back in the words of who asked: as it is where both speak alike, else
// by the tables of package otlpanswer.

// replyOfHTTP is the answer of a collector that speaks HTTP and was asked in one encoding, for
// an SDK that speaks perhaps another. Of one that is too long to be kept the status says all. A page is
// no answer of OTLP, whatever its status: it goes back as it is, and took nothing.
func replyOfHTTP(from *door.Answer, said []byte, asked, speaks encoding, isLong bool) *reply {
	a, media := &reply{Status: saidByHTTP(from), http: from.Status}, from.Field("Content-Type")
	isProtobuf := strings.HasPrefix(media, mediaProtobuf)
	isPage := a.Code == otlpanswer.OK && strings.HasPrefix(media, mediaPage)
	if isPage {
		a.Code = otlpanswer.Unknown
		a.Said = "the destination answered with a page, which is none of OTLP: look at --otlp-forward"
	}
	switch {
	case isLong:
	case asked == speaks:
		if a.asIs, a.asIsType = said, media; said == nil {
			a.asIs = []byte{}
		}
	case isPage:
		a.http = 0
	case asked != inProtobuf || !isProtobuf: // in words that this SDK does not speak
	case a.Code == otlpanswer.OK:
		a.message = said
	default:
		s := otlpanswer.ReadStatus(said)
		a.Said, a.Retry = cmp.Or(s.Said, a.Said), max(a.Retry, s.Retry)
	}
	return a
}

// saidByHTTP is what a status of HTTP says that is none of success.
func saidByHTTP(from *door.Answer) (s otlpanswer.Status) {
	if s.Code = otlpanswer.CodeOf(from.Status); s.Code == otlpanswer.OK {
		return s
	}
	s.Said = "the destination answered " + strconv.Itoa(from.Status) + " " + http.StatusText(from.Status)
	if s.Code == otlpanswer.ResourceExhausted || s.IsRetryable() {
		s.Retry = otlpanswer.RetryAfter(from.Field("Retry-After"), time.Now())
	}
	return s
}

// replyOfGRPC is the answer of a collector that speaks gRPC. Its status stands in trailers, or in the
// header where it has no message.
func replyOfGRPC(from *door.Answer, said []byte, speaks encoding) *reply {
	n, err := strconv.ParseUint(from.Field(headerGRPCStatus), 10, 8)
	if err != nil || n > uint64(otlpanswer.Unauthenticated) { // something else than gRPC answered
		a := &reply{Status: saidByHTTP(from)}
		if a.Code == otlpanswer.OK {
			a.Code, a.Said = otlpanswer.Unknown, "the destination answered without a status of gRPC"
		}
		return a
	}
	a := &reply{Status: otlpanswer.Status{Code: otlpanswer.Code(n)}}
	if a.Code == otlpanswer.OK {
		if message, isPacked, err := unframe(said); err == nil && !isPacked {
			a.message = message
		}
		return a
	}
	if text, err := url.PathUnescape(from.Field(headerGRPCMessage)); err == nil {
		a.Said = text
	}
	details := from.Field(headerGRPCDetails)
	a.Retry = otlpanswer.ReadStatus(decoded(details)).Retry
	if speaks == inGRPC {
		a.asIs = []byte(details)
	}
	return a
}
