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

// encodedMessage is a message in the form in which it is forwarded.
type encodedMessage struct {
	message     []byte
	compression bodies.Compression
	encoding    encoding
}

// isForwardable reports whether the upstream supports the encoding and the compression of the received message. Only a
// gRPC upstream has restrictions: it supports neither JSON nor the block format of snappy.
func (c *call) isForwardable() bool {
	return !c.server.config.Forward.IsGRPC() ||
		c.encoding != inJSON && c.compression.Detect(c.message) != bodies.Snappy
}

// encode sets c.encoded to the message to forward: the sampled message, or the received one if the upstream supports
// it, or the received one in uncompressed protobuf. It returns false if there is no form that the upstream supports.
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

// refuseUnforwardable refuses a call in an encoding that the upstream does not support.
func (c *call) refuseUnforwardable() receiver.Response {
	c.server.forwards.Note(receiver.OutcomeIncompatible, "")
	return c.respond(refused(http.StatusUnsupportedMediaType, signals[c.signal].name+" in JSON or with snappy "+
		"block compression can't be forwarded over gRPC; let the SDK send protobuf, and gzip or no compression"))
}

// Outbound returns the request with the encoded message in the upstream's protocol, OTLP/HTTP or OTLP/gRPC.
func (c *call) Outbound() receiver.OutboundRequest {
	upstream, m, h := &c.server.config.Forward, &c.encoded, c.Header()
	outbound := receiver.OutboundRequest{
		Method: http.MethodPost, Target: upstream.target(c.signal), Header: h, Message: m.message,
	}
	receiver.RemoveConnectionOptions(h)
	receiver.RemoveHopByHop(h)
	for name := range h {
		if name == "Content-Encoding" || name == "Accept-Encoding" || strings.HasPrefix(name, "Grpc-") {
			delete(h, name)
		}
	}
	h.Set("Content-Type", mediaOf[m.encoding])
	isCompressed := m.compression != bodies.Plain
	switch {
	case upstream.IsGRPC():
		p := prefix(len(m.message), isCompressed)
		outbound.Prefix = p[:]
		h.Set("Te", "trailers")
		if isCompressed {
			h.Set(headerGRPCEncoding, nameInGRPC(m.compression))
		}
	case isCompressed:
		h.Set("Content-Encoding", m.compression.String())
	}
	if c.IsCounted {
		h.Set(headerComputedStats, "yes")
	}
	return outbound
}

// Translate returns a response to the sender, in the sender's protocol. It is made from the upstream's response, or
// from the error if there is no response.
func (c *call) Translate(response *http.Response, err error) receiver.Response {
	if err != nil {
		return c.refuseUnanswered(err)
	}
	body, err := receiver.ReadResponse(response, destination.MaxAnswer)
	isTruncated := errors.Is(err, receiver.ErrLongResponse)
	if err != nil && !isTruncated {
		return c.refuseUnanswered(err)
	}
	var a *reply
	switch {
	case c.encoded.encoding != inGRPC:
		a = c.replyFromHTTP(response, body, isTruncated)
	case isTruncated && field(response, headerGRPCStatus) == "": // the trailer with the status was not read
		return c.refuseUnanswered(err)
	default:
		a = replyFromGRPC(response, body, c.encoding)
	}
	outcome := receiver.OutcomeRetryable
	switch {
	case a.Code == otlpanswer.OK:
		outcome = receiver.OutcomeAccepted
	case !a.IsRetryable():
		outcome = receiver.OutcomeRefused
		c.server.Log.Write(slog.LevelWarn, "the --otlp-forward destination rejected a request; the sender drops it",
			"signal", signals[c.signal].name, "answer", a.Message)
	}
	c.server.forwards.Note(outcome, a.Message)
	return c.respond(a)
}

// refuseUnanswered asks the SDK to retry a call without a complete response of the upstream. It closes the connection
// if the SDK has canceled the call.
func (c *call) refuseUnanswered(err error) receiver.Response {
	s := c.server
	if c.IsCanceled() {
		s.forwards.Note(receiver.OutcomeClientGone, "")
		return receiver.CloseConnection
	}
	advice := s.config.Forward.Advise(err)
	s.forwards.Note(receiver.OutcomeUnreachable, advice.Error())
	s.Log.Write(slog.LevelWarn, "the --otlp-forward destination did not respond; the senders are asked to retry",
		"error", advice)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return c.respond(refuse(0, otlpanswer.DeadlineExceeded, "forward request: the destination did not "+
			"respond in time"))
	}
	return c.respond(later(0, "forward request: the destination does not respond"))
}

// field returns the value of a field in the trailer or the header of a response, or "".
func field(response *http.Response, name string) string {
	return cmp.Or(response.Trailer.Get(name), response.Header.Get(name))
}

// replyFromHTTP translates the response of an upstream with OTLP/HTTP. The body is returned unchanged if the SDK and
// the upstream use the same encoding. Otherwise its status is translated from protobuf. A truncated body is ignored:
// the reply then has only the HTTP status.
//
// A web page with a status of 2xx means that the URL of the upstream is wrong. It counts as an error, even though the
// SDK gets the page unchanged.
func (c *call) replyFromHTTP(response *http.Response, body []byte, isTruncated bool) *reply {
	media := response.Header.Get("Content-Type")
	a := &reply{Status: statusFromHTTP(response), http: response.StatusCode}
	isPage := a.Code == otlpanswer.OK && strings.HasPrefix(media, mediaPage)
	if isPage {
		a.Code = otlpanswer.Unknown
		a.Message = "forward request: the destination responded with a web page; check --otlp-forward"
	}
	if isTruncated {
		return a
	}
	if c.encoded.encoding == c.encoding {
		a.asIs, a.asIsType = body, media
		if body == nil {
			a.asIs = []byte{}
		}
		return a
	}
	if isPage {
		a.http = 0
		return a
	}
	if isProtobuf := strings.HasPrefix(media, mediaProtobuf); c.encoded.encoding != inProtobuf || !isProtobuf {
		return a // the body can't be translated
	}
	if a.Code == otlpanswer.OK {
		a.message = body
		return a
	}
	s := otlpanswer.ReadStatus(body)
	a.Message, a.Retry = cmp.Or(s.Message, a.Message), max(a.Retry, s.Retry)
	return a
}

// statusFromHTTP translates the HTTP status and the Retry-After header of a response.
func statusFromHTTP(response *http.Response) (s otlpanswer.Status) {
	if s.Code = otlpanswer.CodeOf(response.StatusCode); s.Code == otlpanswer.OK {
		return s
	}
	s.Message = "forward request: the destination responded with " + strconv.Itoa(response.StatusCode) + " " +
		http.StatusText(response.StatusCode)
	if s.Code == otlpanswer.ResourceExhausted || s.IsRetryable() {
		s.Retry = otlpanswer.RetryAfter(response.Header.Get("Retry-After"), time.Now())
	}
	return s
}

// replyFromGRPC translates the response of a gRPC upstream for an SDK with the given encoding. The gRPC status is in the
// trailer, or in the header of a response without a message.
func replyFromGRPC(response *http.Response, body []byte, sdk encoding) *reply {
	n, err := strconv.ParseUint(field(response, headerGRPCStatus), 10, 8)
	if err != nil || n > uint64(otlpanswer.Unauthenticated) { // not a gRPC response
		a := &reply{Status: statusFromHTTP(response)}
		if a.Code == otlpanswer.OK {
			a.Code, a.Message = otlpanswer.Unknown, "forward request: the destination responded without a gRPC status"
		}
		return a
	}
	a := &reply{Status: otlpanswer.Status{Code: otlpanswer.Code(n)}}
	if a.Code == otlpanswer.OK {
		if message, isCompressed, err := unframe(body); err == nil && !isCompressed {
			a.message = message
		}
		return a
	}
	if text, err := url.PathUnescape(field(response, headerGRPCMessage)); err == nil {
		a.Message = text
	}
	details := field(response, headerGRPCDetails)
	a.Retry = otlpanswer.ReadStatus(decodeBinary(details)).Retry
	if sdk == inGRPC {
		a.asIs = []byte(details)
	}
	return a
}

// reply is a response to an SDK before it is written in the SDK's protocol.
type reply struct {
	otlpanswer.Status
	result  Result // result of a request that is refused by the receiver
	http    int    // HTTP status if it differs from the one of the code; 0 otherwise
	message []byte // Export...Response message in protobuf, if the code is OK
	// asIs is a part of the upstream's response if the SDK uses the same protocol, and nil otherwise: the body with
	// OTLP/HTTP, the encoded status details with OTLP/gRPC.
	asIs     []byte
	asIsType string // content type of asIs with OTLP/HTTP
}

// accepted returns the reply to an accepted request.
func accepted() *reply { return &reply{} }

// refuse returns a reply with an error.
func refuse(result Result, code otlpanswer.Code, message string) *reply {
	return &reply{result: result, Status: otlpanswer.Status{Code: code, Message: message}}
}

// refused returns the reply to a request that is invalid for every OTLP receiver. status is the HTTP status.
func refused(status int, message string) *reply {
	refusal := refuse(ResultRefused, otlpanswer.Unimplemented, message)
	refusal.http = status
	return refusal
}

// later returns a reply that asks for a retry.
func later(result Result, message string) *reply {
	refusal := refuse(result, otlpanswer.Unavailable, message)
	refusal.Retry = retryAfter
	return refusal
}

// retryAfter is the delay before a retry that the receiver asks for. Most SDKs wait at least as long by default.
const retryAfter = time.Second

// status returns the HTTP status of the reply.
func (a *reply) status() int { return cmp.Or(a.http, a.HTTP()) }

// writeHTTP writes an OTLP/HTTP response in the encoding e to a request of the signal s.
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
	return err //nolint:wrapcheck // the receiver ignores its text
}
