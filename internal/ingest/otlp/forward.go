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

// canForwardReceived reports whether the upstream can read the message as it was received. An OTLP/HTTP upstream
// always can. An OTLP/gRPC upstream can read neither JSON nor the block format of snappy.
func (c *call) canForwardReceived() bool {
	if !c.server.config.Forward.IsGRPC() {
		return true
	}
	actualCompression := c.compression.Detect(c.message)
	isSnappyBlock := actualCompression == bodies.Snappy
	return c.encoding != encodingJSON && !isSnappyBlock
}

// setForwarded sets c.forwarded to the message for the upstream: the one with only the sampled spans, the received
// one, or its conversion to protobuf. It returns false if the upstream can't read any of them.
func (c *call) setForwarded() (canForward bool) {
	protobufEncoding := encodingProtobuf // of a message in protobuf
	if c.server.config.Forward.IsGRPC() {
		protobufEncoding = encodingGRPC
	}
	receivedEncoding := protobufEncoding // of the received message
	if c.encoding == encodingJSON {
		receivedEncoding = encodingJSON
	}
	switch {
	case c.sampled.body != nil:
		c.forwarded = encodedMessage{c.sampled.body.Bytes, c.sampled.compression, protobufEncoding}
	case c.canForwardReceived():
		c.forwarded = encodedMessage{c.message, c.compression, receivedEncoding}
	case c.protobuf != nil:
		c.forwarded = encodedMessage{c.protobuf, bodies.Plain, protobufEncoding}
	default:
		return false
	}
	return true
}

// refuseUnforwardable refuses a request that can't be forwarded in any encoding that the upstream can read.
func (c *call) refuseUnforwardable() receiver.Response {
	c.server.forwards.Record(receiver.OutcomeIncompatible, "")
	return c.respond(unsupported(http.StatusUnsupportedMediaType, signals[c.signal].name+" in JSON or with snappy "+
		"block compression can't be forwarded over gRPC; let the SDK send protobuf, and gzip or no compression"))
}

// Outbound returns the request for the upstream, as OTLP/HTTP or OTLP/gRPC. It has the header of the received
// request, except for fields about the connection, the protocol or the compression.
func (c *call) Outbound() receiver.OutboundRequest {
	upstream := &c.server.config.Forward
	header := c.Header()
	removeTransportHeaders(header)
	header.Set("Content-Type", mediaOf[c.forwarded.encoding])
	if c.IsCounted {
		header.Set(headerComputedStats, "yes")
	}
	outbound := receiver.OutboundRequest{
		Method: http.MethodPost, Target: upstream.target(c.signal), Header: header, Message: c.forwarded.message,
	}
	if upstream.IsGRPC() {
		c.addGRPCFraming(&outbound)
		return outbound
	}
	if c.forwarded.compression != bodies.Plain {
		header.Set("Content-Encoding", c.forwarded.compression.String())
	}
	return outbound
}

// addGRPCFraming adds the header fields of OTLP/gRPC and the prefix of the message to a request.
func (c *call) addGRPCFraming(outbound *receiver.OutboundRequest) {
	isCompressed := c.forwarded.compression != bodies.Plain
	outbound.Header.Set("Te", "trailers")
	if isCompressed {
		outbound.Header.Set(headerGRPCEncoding, nameInGRPC(c.forwarded.compression))
	}
	messagePrefix := grpcPrefix(len(c.forwarded.message), isCompressed)
	outbound.Prefix = messagePrefix[:]
}

// removeTransportHeaders removes the header fields of a received request that must not be forwarded, because they
// describe the sender's connection, protocol or compression.
func removeTransportHeaders(header http.Header) {
	receiver.RemoveConnectionOptions(header)
	receiver.RemoveHopByHop(header)
	header.Del("Content-Encoding")
	header.Del("Accept-Encoding")
	for name := range header {
		if strings.HasPrefix(name, "Grpc-") {
			delete(header, name)
		}
	}
}

// Translate converts the response of the upstream to the protocol of the sender: OTLP/gRPC, or OTLP/HTTP in
// protobuf or JSON. forwardErr is the error of forwarding the request, or nil. Translate returns an error response if
// there is no complete response of the upstream.
func (c *call) Translate(response *http.Response, forwardErr error) receiver.Response {
	if forwardErr != nil {
		return c.refuseUnanswered(forwardErr)
	}
	translated, err := c.readReply(response)
	if err != nil {
		return c.refuseUnanswered(err)
	}
	c.noteOutcome(translated)
	return c.respond(translated)
}

// readReply reads the response of the upstream and converts it to a reply. It returns an error if the response is
// incomplete. If the body is longer than destination.MaxAnswer, the reply contains only the status.
func (c *call) readReply(response *http.Response) (*reply, error) {
	body, err := receiver.ReadResponse(response, destination.MaxAnswer)
	isTooLong := errors.Is(err, receiver.ErrLongResponse)
	if err != nil && !isTooLong {
		return nil, err
	}
	if c.forwarded.encoding != encodingGRPC {
		return c.replyFromHTTP(response, body, isTooLong), nil
	}
	isStatusMissing := field(response, headerGRPCStatus) == "" // a long body can end the reading before the trailer
	if isTooLong && isStatusMissing {
		return nil, err
	}
	return replyFromGRPC(response, body, c.encoding), nil
}

// noteOutcome counts a forwarded request as accepted, retryable or refused by the upstream. It logs a refusal.
func (c *call) noteOutcome(translated *reply) {
	var outcome receiver.ForwardOutcome
	switch {
	case translated.Code == otlpanswer.OK:
		outcome = receiver.OutcomeAccepted
	case translated.IsRetryable():
		outcome = receiver.OutcomeRetryable
	default:
		outcome = receiver.OutcomeRefused
		c.server.Log.Write(slog.LevelWarn, "the --otlp-forward destination rejected a request; the sender drops it",
			"signal", signals[c.signal].name, "answer", translated.Message)
	}
	c.server.forwards.Record(outcome, translated.Message)
}

// refuseUnanswered counts and logs that the upstream has not responded to the request, because of err. It returns a
// response that asks the sender to retry. If the sender has canceled the request, the response closes the connection
// instead.
func (c *call) refuseUnanswered(err error) receiver.Response {
	s := c.server
	if c.IsCanceled() {
		s.forwards.Record(receiver.OutcomeClientGone, "")
		return receiver.CloseConnection
	}
	errWithAdvice := s.config.Forward.Advise(err)
	s.forwards.Record(receiver.OutcomeUnreachable, errWithAdvice.Error())
	s.Log.Write(slog.LevelWarn, "the --otlp-forward destination did not respond; the senders are asked to retry",
		"error", errWithAdvice)
	isTimeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	if isTimeout {
		return c.respond(errorReply(otlpanswer.DeadlineExceeded, "forward request: the destination did not "+
			"respond in time"))
	}
	return c.respond(retryReply("forward request: the destination does not respond"))
}

// field returns the value of a field in the trailer of a response. If the trailer does not have it, field returns the
// value in the header, or "".
func field(response *http.Response, name string) string {
	return cmp.Or(response.Trailer.Get(name), response.Header.Get(name))
}

// replyFromHTTP converts the response of an OTLP/HTTP upstream to a reply. If the sender and the upstream use the same
// encoding, the reply contains the status and body unchanged. A web page with a success status counts as an error. If
// isTruncated is true, the reply has no body.
func (c *call) replyFromHTTP(response *http.Response, body []byte, isTruncated bool) *reply {
	mediaType := response.Header.Get("Content-Type")
	translated := &reply{Status: statusFromHTTP(response), httpStatus: response.StatusCode}
	isWebPage := translated.Code == otlpanswer.OK && strings.HasPrefix(mediaType, mediaPage)
	if isWebPage {
		translated.Code = otlpanswer.Unknown
		translated.Message = "forward request: the destination responded with a web page; check --otlp-forward"
	}
	upstreamEncoding := c.forwarded.encoding
	canCopy := c.encoding == upstreamEncoding && !isTruncated
	isProtobuf := upstreamEncoding == encodingProtobuf && strings.HasPrefix(mediaType, mediaProtobuf)
	switch {
	case canCopy: // also a web page, with its success status
		translated.copyBody(body, mediaType)
	case isWebPage:
		translated.httpStatus = 0 // the sender gets the HTTP status of translated.Code instead of a success
	case isProtobuf && !isTruncated:
		translated.readProtobuf(body)
	}
	return translated
}

// copyBody makes body, the body of the upstream's response, the body of an OTLP/HTTP response to the sender.
func (r *reply) copyBody(body []byte, mediaType string) {
	r.isBodyCopied = true
	r.copiedBody = body
	r.copiedType = mediaType
}

// readProtobuf adds the body of a protobuf response to r. If r is a success, body is the Export...Response message.
// Otherwise, body is an encoded status, from which r gets the error message and the retry delay.
func (r *reply) readProtobuf(body []byte) {
	if r.Code == otlpanswer.OK {
		r.responseBody = body
		return
	}
	upstreamStatus := otlpanswer.ReadStatus(body)
	r.Message = cmp.Or(upstreamStatus.Message, r.Message)
	r.Retry = max(r.Retry, upstreamStatus.Retry)
}

// statusFromHTTP converts the HTTP status of a response to a gRPC status. If the client can retry the request, the
// gRPC status also contains the delay from the Retry-After header.
func statusFromHTTP(response *http.Response) (status otlpanswer.Status) {
	status.Code = otlpanswer.CodeOf(response.StatusCode)
	if status.Code == otlpanswer.OK {
		return status
	}
	httpStatus := strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode)
	status.Message = "forward request: the destination responded with " + httpStatus
	isExhausted := status.Code == otlpanswer.ResourceExhausted // retryable only if it has a delay
	if isExhausted || status.IsRetryable() {
		status.Retry = otlpanswer.RetryAfter(response.Header.Get("Retry-After"), time.Now())
	}
	return status
}

// replyFromGRPC converts the response of an OTLP/gRPC upstream to a reply. senderEncoding is the encoding of the
// request that the sender sent. If it is gRPC, the reply also contains the upstream's error details unchanged.
func replyFromGRPC(response *http.Response, body []byte, senderEncoding encoding) *reply {
	code, isGRPC := grpcCode(response)
	if !isGRPC {
		return replyWithoutGRPC(response)
	}
	if code == otlpanswer.OK {
		return successFromGRPC(body)
	}
	translated := &reply{Status: otlpanswer.Status{Code: code}}
	text, err := url.PathUnescape(field(response, headerGRPCMessage))
	if err == nil {
		translated.Message = text
	}
	details := field(response, headerGRPCDetails)
	translated.Retry = otlpanswer.ReadStatus(decodeBinary(details)).Retry
	if senderEncoding == encodingGRPC { // the sender can read all details, not only the retry delay
		translated.areDetailsCopied = true
		translated.copiedDetails = details
	}
	return translated
}

// successFromGRPC returns the reply for a successful gRPC response with the given body. An invalid or compressed body
// is ignored.
func successFromGRPC(body []byte) *reply {
	translated := successReply()
	message, isCompressed, err := unframe(body)
	if err == nil && !isCompressed {
		translated.responseBody = message
	}
	return translated
}

// grpcCode returns the gRPC status code of a response. isGRPC is false if the response has no valid code, for
// example because a proxy has sent it.
func grpcCode(response *http.Response) (code otlpanswer.Code, isGRPC bool) {
	const highestCode = uint64(otlpanswer.Unauthenticated)
	number, err := strconv.ParseUint(field(response, headerGRPCStatus), 10, 8)
	if err != nil || number > highestCode {
		return 0, false
	}
	return otlpanswer.Code(number), true
}

// replyWithoutGRPC converts a response without a gRPC status, for example of a proxy, to a reply. The reply is an
// error even if the HTTP status is a success.
func replyWithoutGRPC(response *http.Response) *reply {
	translated := &reply{Status: statusFromHTTP(response)}
	if translated.Code == otlpanswer.OK {
		translated.Code = otlpanswer.Unknown
		translated.Message = "forward request: the destination responded without a gRPC status"
	}
	return translated
}

// reply is a response to a sender before it is written in the sender's protocol.
type reply struct {
	otlpanswer.Status
	result     Result // result of a request that the receiver refuses
	httpStatus int    // HTTP status if it differs from the one of the code; 0 otherwise
	// responseBody is the Export...Response or HealthCheckResponse message in protobuf, if the code is OK.
	responseBody []byte

	isBodyCopied bool // whether an OTLP/HTTP sender gets copiedBody, the body of the upstream's response
	copiedBody   []byte
	copiedType   string // content type of copiedBody

	areDetailsCopied bool   // whether a gRPC sender gets copiedDetails
	copiedDetails    string // encoded details of the upstream's gRPC status
}

// successReply returns the reply to an accepted request.
func successReply() *reply { return &reply{} }

// errorReply returns a reply with an error.
func errorReply(code otlpanswer.Code, message string) *reply {
	return &reply{Status: otlpanswer.Status{Code: code, Message: message}}
}

// retryReply returns a reply that asks the sender to retry.
func retryReply(message string) *reply {
	retry := errorReply(otlpanswer.Unavailable, message)
	retry.Retry = retryAfter
	return retry
}

// newRefusal returns the reply to a request that the receiver refuses. result is the metric label of the request.
func newRefusal(result Result, code otlpanswer.Code, message string) *reply {
	refusal := errorReply(code, message)
	refusal.result = result
	return refusal
}

// unsupported returns the reply to a request that is invalid for every OTLP receiver, for example because of its path.
func unsupported(httpStatus int, message string) *reply {
	refusal := newRefusal(ResultRefused, otlpanswer.Unimplemented, message)
	refusal.httpStatus = httpStatus
	return refusal
}

// retryableRefusal returns the reply to a request that the receiver refuses now, but may accept later. result is the
// metric label of the request.
func retryableRefusal(result Result, message string) *reply {
	refusal := retryReply(message)
	refusal.result = result
	return refusal
}

// retryAfter is the delay before a retry that the receiver asks for. Most SDKs wait at least as long by default.
const retryAfter = time.Second

// statusCode returns the HTTP status code of the reply.
func (r *reply) statusCode() int { return cmp.Or(r.httpStatus, r.HTTP()) }

// writeHTTP writes the OTLP/HTTP response to a request with the given encoding and signal.
func (r *reply) writeHTTP(w http.ResponseWriter, requestEncoding encoding, requestSignal signal) error {
	body, mediaType := r.copiedBody, r.copiedType
	if !r.isBodyCopied {
		body = r.encodeBody(requestEncoding, requestSignal)
	}
	header := w.Header()
	header.Set("Content-Type", cmp.Or(mediaType, mediaOf[requestEncoding]))
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Retry > 0 {
		header.Set("Retry-After", r.RetryAfter())
	}
	w.WriteHeader(r.statusCode())
	_, err := w.Write(body)
	return err
}

// encodeBody returns the body of an OTLP/HTTP response, encoded like the request: the result of an accepted
// request, or an error. requestSignal is the kind of data in the request.
func (r *reply) encodeBody(requestEncoding encoding, requestSignal signal) []byte {
	isAccepted := r.Code == otlpanswer.OK
	isJSON := requestEncoding == encodingJSON
	switch {
	case isAccepted && isJSON:
		partialSuccess := otlpanswer.ReadPartial(r.responseBody)
		return partialSuccess.JSON(signals[requestSignal].rejectedName)
	case isAccepted:
		return r.responseBody
	case isJSON:
		return r.Status.JSON()
	default:
		return r.Status.Protobuf()
	}
}
