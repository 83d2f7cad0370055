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

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/destination"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// encodedMessage is a message as it is forwarded.
type encodedMessage struct {
	message     []byte
	compression bodies.Compression
	encoding    encoding
}

// isForwardable reports whether the upstream reads a message as it came. gRPC has no JSON, and snappy only
// in frames.
func (c *call) isForwardable() bool {
	return !c.server.config.Forward.IsGRPC() ||
		c.encoding != inJSON && c.compression.Detect(c.message) != bodies.Snappy
}

// encode chooses the bytes that are forwarded: those that came if the upstream reads them. It reports
// false if it reads none.
func (c *call) encode() bool {
	isGRPC := c.server.config.Forward.IsGRPC()
	c.encoded = encodedMessage{c.message, c.compression, c.encoding}
	switch {
	case c.sampled.body != nil:
		c.encoded = encodedMessage{c.sampled.body.Bytes, c.sampled.compression, inProtobuf}
	case !c.isForwardable():
		c.encoded = encodedMessage{c.protobuf, bodies.Plain, inGRPC}
		return c.protobuf != nil
	case c.encoding == inGRPC:
		c.encoded.encoding = inProtobuf
	}
	if isGRPC {
		c.encoded.encoding = inGRPC
	}
	return true
}

// unfit responds to a call that the upstream can't read.
func (c *call) unfit() receiver.Response {
	c.server.forwards.Note(receiver.OutcomeUnfit, "")
	return c.respond(refused(http.StatusUnsupportedMediaType, signals[c.signal].name+" in JSON or in a block "+
		"of snappy can't go on to a destination that speaks gRPC; have the SDK send protobuf, or gzip"))
}

// Outbound returns the message with what the upstream's protocol has around it.
func (c *call) Outbound() receiver.OutboundRequest {
	to, m, h := &c.server.config.Forward, &c.encoded, c.Header()
	out := receiver.OutboundRequest{
		Method: http.MethodPost, Target: to.target(c.signal), Header: h, Message: m.message,
	}
	receiver.RemoveNamed(h)
	receiver.RemoveHopByHop(h)
	for name := range h {
		if name == "Content-Encoding" || name == "Accept-Encoding" || strings.HasPrefix(name, "Grpc-") {
			delete(h, name)
		}
	}
	h.Set("Content-Type", mediaOf[m.encoding])
	switch {
	case to.IsGRPC():
		p := prefix(len(m.message), m.compression != bodies.Plain)
		out.Prefix = p[:]
		h.Set("Te", "trailers")
		if m.compression != bodies.Plain {
			h.Set(headerGRPCEncoding, nameInGRPC(m.compression))
		}
	case m.compression != bodies.Plain:
		h.Set("Content-Encoding", m.compression.String())
	}
	if c.IsCounted {
		h.Set(headerComputedStats, "yes")
	}
	return out
}

// Translate makes a response of the upstream's in the protocol of the sender.
func (c *call) Translate(from *http.Response, err error) receiver.Response {
	if err != nil {
		return c.unanswered(err)
	}
	said, err := receiver.ReadResponse(from, destination.MaxAnswer)
	isLong := errors.Is(err, receiver.ErrLongResponse)
	if err != nil && !isLong {
		return c.unanswered(err)
	}
	var a *reply
	switch {
	case c.encoded.encoding != inGRPC:
		a = replyOfHTTP(from, said, c.encoded.encoding, c.encoding, isLong)
	case isLong && field(from, headerGRPCStatus) == "": // its end did not come
		return c.unanswered(err)
	default:
		a = replyOfGRPC(from, said, c.encoding)
	}
	outcome := receiver.OutcomeLater
	switch {
	case a.Code == otlpanswer.OK:
		outcome = receiver.OutcomeTaken
	case !a.IsRetryable():
		outcome = receiver.OutcomeRefused
		c.server.Log.Write(slog.LevelWarn, "the destination of OTLP refused a request; its sender drops it",
			"signal", signals[c.signal].name, "answer", a.Message)
	}
	c.server.forwards.Note(outcome, a.Message)
	return c.respond(a)
}

// unanswered asks the SDK to retry.
func (c *call) unanswered(err error) receiver.Response {
	s := c.server
	if c.IsCanceled() {
		s.forwards.Note(receiver.OutcomeLeft, "")
		return receiver.CloseConnection
	}
	why := s.config.Forward.Advise(err)
	s.forwards.Note(receiver.OutcomeAway, why.Error())
	s.Log.Write(slog.LevelWarn, "the destination of OTLP did not answer; its senders are told to try again",
		"error", why)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return c.respond(refuse(0, otlpanswer.DeadlineExceeded, "the destination did not answer in time"))
	}
	return c.respond(later(0, "the destination does not answer"))
}

// field returns a field of a response's trailer or header.
func field(from *http.Response, name string) string {
	return cmp.Or(from.Trailer.Get(name), from.Header.Get(name))
}

// replyOfHTTP translates the response of an upstream that was asked over HTTP in one encoding for an SDK that
// may speak another: as it is if both are the same, otherwise by the tables of package otlpanswer. If the
// response is too long, its status says all. A web page is not a response of OTLP, whatever its status: it
// is returned as it is, and has accepted nothing.
func replyOfHTTP(from *http.Response, said []byte, asked, speaks encoding, isLong bool) *reply {
	a, media := &reply{Status: saidByHTTP(from), http: from.StatusCode}, from.Header.Get("Content-Type")
	isProtobuf := strings.HasPrefix(media, mediaProtobuf)
	isPage := a.Code == otlpanswer.OK && strings.HasPrefix(media, mediaPage)
	if isPage {
		a.Code = otlpanswer.Unknown
		a.Message = "the destination answered with a page, which is none of OTLP: look at --otlp-forward"
	}
	switch {
	case isLong:
	case asked == speaks:
		if a.asIs, a.asIsType = said, media; said == nil {
			a.asIs = []byte{}
		}
	case isPage:
		a.http = 0
	case asked != inProtobuf || !isProtobuf: // in an encoding that this SDK does not read
	case a.Code == otlpanswer.OK:
		a.message = said
	default:
		s := otlpanswer.ReadStatus(said)
		a.Message, a.Retry = cmp.Or(s.Message, a.Message), max(a.Retry, s.Retry)
	}
	return a
}

// saidByHTTP translates an HTTP status.
func saidByHTTP(from *http.Response) (s otlpanswer.Status) {
	if s.Code = otlpanswer.CodeOf(from.StatusCode); s.Code == otlpanswer.OK {
		return s
	}
	s.Message = "the destination answered " + strconv.Itoa(from.StatusCode) + " " + http.StatusText(from.StatusCode)
	if s.Code == otlpanswer.ResourceExhausted || s.IsRetryable() {
		s.Retry = otlpanswer.RetryAfter(from.Header.Get("Retry-After"), time.Now())
	}
	return s
}

// replyOfGRPC translates the response of an upstream that speaks gRPC. Its status is in the trailer, or in the
// header if there is no message.
func replyOfGRPC(from *http.Response, said []byte, speaks encoding) *reply {
	n, err := strconv.ParseUint(field(from, headerGRPCStatus), 10, 8)
	if err != nil || n > uint64(otlpanswer.Unauthenticated) { // not gRPC
		a := &reply{Status: saidByHTTP(from)}
		if a.Code == otlpanswer.OK {
			a.Code, a.Message = otlpanswer.Unknown, "the destination answered without a status of gRPC"
		}
		return a
	}
	a := &reply{Status: otlpanswer.Status{Code: otlpanswer.Code(n)}}
	if a.Code == otlpanswer.OK {
		if message, isCompressed, err := unframe(said); err == nil && !isCompressed {
			a.message = message
		}
		return a
	}
	if text, err := url.PathUnescape(field(from, headerGRPCMessage)); err == nil {
		a.Message = text
	}
	details := field(from, headerGRPCDetails)
	a.Retry = otlpanswer.ReadStatus(decoded(details)).Retry
	if speaks == inGRPC {
		a.asIs = []byte(details)
	}
	return a
}

// reply is a response to an SDK before it is written in the SDK's protocol.
type reply struct {
	otlpanswer.Status
	result  Result // of a request that is refused here
	http    int    // HTTP status, if it says more than the code; 0 otherwise
	message []byte // an Export...Response in protobuf, if the code is OK
	// asIs is the body of the upstream's response if the SDK speaks the same protocol, otherwise nil. With
	// HTTP it has any type, with gRPC it is the details of the status.
	asIs     []byte
	asIsType string
}

// accepted returns the reply to a request that is accepted.
func accepted() *reply { return &reply{} }

func refuse(result Result, c otlpanswer.Code, said string) *reply {
	return &reply{result: result, Status: otlpanswer.Status{Code: c, Message: said}}
}

// refused returns the reply to a request that no receiver could accept.
func refused(status int, said string) *reply {
	no := refuse(ResultRefused, otlpanswer.Unimplemented, said)
	no.http = status
	return no
}

// later returns a reply that asks for a retry.
func later(result Result, said string) *reply {
	no := refuse(result, otlpanswer.Unavailable, said)
	no.Retry = retryAfter
	return no
}

// retryAfter is when an SDK may retry a request that found no room. Most SDKs wait at least as long by
// themselves.
const retryAfter = time.Second

// status returns the HTTP status.
func (a *reply) status() int { return cmp.Or(a.http, a.HTTP()) }

// writeHTTP writes a response of OTLP/HTTP.
func (a *reply) writeHTTP(w http.ResponseWriter, e encoding, s signal) error {
	h := w.Header()
	body, media := a.asIs, a.asIsType
	switch {
	case a.asIs != nil:
	case a.Code == otlpanswer.OK && e == inJSON:
		body = otlpanswer.ReadPartial(a.message).JSON(signals[s].rejected)
	case a.Code == otlpanswer.OK:
		body = a.message
	case e == inJSON:
		body = a.JSON()
	default:
		body = a.Protobuf()
	}
	if media == "" {
		media = mediaOf[e]
	}
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if a.Retry > 0 {
		h.Set("Retry-After", a.RetryAfter())
	}
	w.WriteHeader(a.status())
	_, err := w.Write(body)
	return err //nolint:wrapcheck // nobody reads it
}
