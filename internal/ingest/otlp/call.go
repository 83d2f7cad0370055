package otlp

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// call is an OTLP request.
type call struct {
	*receiver.BufferedRequest
	server      *Server
	signal      signal
	encoding    encoding
	origin      string             // value of the Origin header of a browser; "" for other senders
	compression bodies.Compression // compression of message
	message     []byte             // received message, without the prefix of gRPC
	protobuf    []byte             // message converted to uncompressed protobuf; nil if it was not converted
	sampled     sampled
	forwarded   encodedMessage // forwarded message
}

// signal is an index in signals.
type signal uint8

const (
	signalTraces signal = iota
	signalMetrics
	signalLogs
	signalHealth // gRPC's health check of the daemon
)

// signals are the properties of each signal, except for signalHealth.
var signals = [...]struct {
	name     string // name in metrics and responses
	httpPath string // path with OTLP/HTTP, relative to the base URL
	grpcPath string // path with OTLP/gRPC
	// rejectedName is the JSON name of the partial-success field with the number of rejected items.
	rejectedName string
}{
	{"traces", "/v1/traces", exportPath("trace.v1.Trace"), "rejectedSpans"},
	{"metrics", "/v1/metrics", exportPath("metrics.v1.Metrics"), "rejectedDataPoints"},
	{"logs", "/v1/logs", exportPath("logs.v1.Logs"), "rejectedLogRecords"},
}

const (
	grpcPaths    = "/opentelemetry.proto."
	exportMethod = "/Export"
)

// exportPath returns the path of a service's Export method.
func exportPath(service string) string {
	return grpcPaths + "collector." + service + "Service" + exportMethod
}

// signalOf returns the signal for a request path, for example signalTraces for /v1/traces. found is false if the path
// is unknown. isGRPC is true for a path of a gRPC method, even if the method is unknown.
func signalOf(path string) (s signal, isGRPC, found bool) {
	for i := range signals {
		switch path {
		case signals[i].httpPath:
			return signal(i), false, true
		case signals[i].grpcPath:
			return signal(i), true, true
		}
	}
	if path == healthPath {
		return signalHealth, true, true
	}
	return 0, strings.HasPrefix(path, grpcPaths), false
}

// encoding is the protocol and the encoding of a message.
type encoding uint8

const (
	encodingProtobuf encoding = iota // OTLP/HTTP with protobuf
	encodingJSON                     // OTLP/HTTP with JSON
	encodingGRPC                     // OTLP/gRPC
	unknownEncoding
)

// The media types of OTLP, and the media type of a web page.
const (
	mediaProtobuf = "application/x-protobuf"
	mediaJSON     = "application/json"
	mediaGRPC     = "application/grpc"
	mediaPage     = "text/html"
)

var mediaOf = [...]string{encodingProtobuf: mediaProtobuf, encodingJSON: mediaJSON, encodingGRPC: mediaGRPC}

// encodingOf returns the encoding for the value of a Content-Type header, or unknownEncoding. It ignores
// parameters, such as a charset. A value without parameters, as most SDKs send, is not parsed.
func encodingOf(contentType string) encoding {
	found := encodingOfMedia(contentType)
	if found != unknownEncoding {
		return found
	}
	mediaType, _, _ := mime.ParseMediaType(contentType)
	return encodingOfMedia(mediaType)
}

// encodingOfMedia returns the encoding for a media type without parameters, or unknownEncoding.
func encodingOfMedia(mediaType string) encoding {
	switch mediaType {
	case mediaProtobuf:
		return encodingProtobuf
	case mediaJSON:
		return encodingJSON
	case mediaGRPC, mediaGRPC + "+proto":
		return encodingGRPC
	}
	return unknownEncoding
}

// classify checks the path and the header of a request. It returns an Exchange, which handles the request, or a
// Response if the request is invalid or a CORS preflight request.
func (s *Server) classify(r *receiver.BufferedRequest) (receiver.Exchange, receiver.Response) {
	c := &call{BufferedRequest: r, server: s, encoding: encodingOf(r.Header().Get("Content-Type"))}
	permitsWebPages := s.config.AllowedOrigins != nil
	if permitsWebPages {
		c.origin = r.Header().Get("Origin") // the web page of a browser
	}
	if c.isPreflight() {
		return nil, c.answerPreflight()
	}
	refusal := c.readHead()
	if refusal != nil {
		return nil, c.respondError(refusal)
	}
	if c.signal == signalHealth {
		return healthCheck{c}, nil
	}
	return c, nil
}

// readHead sets the signal and the compression of the call from the path and the header of the request. If the request
// is not supported, it returns an error reply. If the encoding is not supported, it replaces c.encoding, which comes
// from the Content-Type, by the encoding of the error reply.
func (c *call) readHead() (refusal *reply) {
	requestSignal, isGRPCPath, isKnownPath := signalOf(c.HTTP.URL.Path)
	c.signal = requestSignal
	isGRPCType := c.encoding == encodingGRPC
	matchesPath := !isKnownPath || isGRPCType == isGRPCPath // not gRPC at an HTTP path, or the other way round
	isSupportedType := c.encoding != unknownEncoding && matchesPath
	if !isSupportedType {
		c.encoding = c.refusalEncoding(isGRPCPath)
	}
	switch {
	case !isKnownPath:
		return unsupported(http.StatusNotFound, "unknown path; send OTLP to /v1/traces, /v1/metrics or /v1/logs")
	case c.HTTP.Method != http.MethodPost:
		return unsupported(http.StatusMethodNotAllowed, "only POST is supported")
	case !isSupportedType:
		return unsupported(http.StatusUnsupportedMediaType, "unsupported Content-Type; /v1/... accepts "+
			"application/x-protobuf and application/json, a gRPC method application/grpc")
	case c.hasNoLength():
		return newRefusal(ResultRefused, otlpanswer.InvalidArgument, "an HTTP/1.0 request must declare its length")
	}
	return c.readTransport(isGRPCPath)
}

// readTransport checks the version of HTTP, and sets the compression of the call. It returns an error reply if the
// version or the compression is not supported, and nil otherwise.
func (c *call) readTransport(isGRPC bool) (refusal *reply) {
	if isGRPC && c.HTTP.ProtoMajor != 2 {
		return unsupported(http.StatusHTTPVersionNotSupported, "gRPC needs HTTP/2")
	}
	isKnownCompression := c.readCompression()
	if !isKnownCompression {
		return unsupported(http.StatusUnsupportedMediaType, "unsupported compression; use none, or "+
			bodies.Compressions+", over gRPC "+grpcCompressions)
	}
	return nil
}

// refusalEncoding returns the encoding of the error reply to a request with an unsupported content type. A gRPC client
// that sends another encoding, for example application/grpc+json, gets a gRPC reply. Others get JSON, which people
// can read.
func (c *call) refusalEncoding(isGRPCPath bool) encoding {
	const otherGRPCPrefix = mediaGRPC + "+"
	isOtherGRPC := strings.HasPrefix(c.Header().Get("Content-Type"), otherGRPCPrefix)
	if isGRPCPath && isOtherGRPC {
		return encodingGRPC
	}
	return encodingJSON
}

// hasNoLength reports whether the request is an HTTP/1.0 request without a Content-Length header. net/http treats its
// body as empty, so its spans would be lost without an error.
func (c *call) hasNoLength() bool {
	r := c.HTTP
	hasHeader := r.Header.Get("Content-Length") != ""
	return !r.ProtoAtLeast(1, 1) && r.ContentLength == 0 && !hasHeader
}

// readCompression sets c.compression from the grpc-encoding header of a gRPC request, or the Content-Encoding
// header of another one. It returns false if the compression is not supported.
func (c *call) readCompression() (isKnown bool) {
	if c.encoding == encodingGRPC {
		c.compression, isKnown = compressionFromGRPC(c.Header().Get(headerGRPCEncoding))
	} else {
		c.compression, isKnown = bodies.CompressionOf(c.Header().Get("Content-Encoding"))
	}
	return isKnown
}

// readMessage sets c.message to the message in the body of the request. readErr is the error of reading the body, or
// nil. readMessage returns an error reply if the body is incomplete, or if its gRPC prefix is invalid.
func (c *call) readMessage(readErr error) (refusal *reply) {
	if readErr != nil {
		incomplete := fmt.Errorf("read request: the body is incomplete: %w", readErr)
		return c.server.refuseUnreadable(incomplete, ResultIncomplete)
	}
	c.message = c.Body.Bytes
	if c.encoding != encodingGRPC {
		return nil
	}
	return c.removeGRPCPrefix()
}

// removeGRPCPrefix removes the 5-byte gRPC prefix from the message. If the flag in the prefix says that the message is
// not compressed, it sets the compression to Plain, whatever the header says. It returns an error reply if the
// prefix is invalid.
func (c *call) removeGRPCPrefix() (refusal *reply) {
	message, isCompressed, err := unframe(c.message)
	if err != nil {
		return newRefusal(ResultUnparsable, otlpanswer.InvalidArgument, err.Error())
	}
	if isCompressed && c.compression == bodies.Plain {
		return newRefusal(ResultUnparsable, otlpanswer.Internal,
			"the message is compressed, but grpc-encoding names no compression")
	}
	c.message = message
	if !isCompressed {
		c.compression = bodies.Plain
	}
	return nil
}

// refuseUnreadable returns the error reply to a request that can't be read, decompressed or parsed because of err.
// The request is counted under ResultTooLarge or ResultBusy if err is a size or memory limit, and otherwise under result.
func (s *Server) refuseUnreadable(err error, result Result) (refusal *reply) {
	switch {
	case errors.Is(err, bodies.ErrTooLarge):
		return newRefusal(ResultTooLarge, otlpanswer.ResourceExhausted, fmt.Sprintf(
			"the request has more than the maximum of %d bytes; configure smaller batches in the SDK, or raise "+
				"--otlp-max-body", s.config.MaxBody))
	case errors.Is(err, bodies.ErrNoRoom):
		return retryableRefusal(ResultBusy, "all memory for requests is in use; retry later, or raise --otlp-max-body-bytes")
	case errors.Is(err, os.ErrDeadlineExceeded):
		refusal = newRefusal(result, otlpanswer.DeadlineExceeded, "the request did not arrive completely in time")
		refusal.httpStatus = http.StatusRequestTimeout
		return refusal
	}
	return newRefusal(result, otlpanswer.InvalidArgument, err.Error())
}

// senderAttributes returns log attributes that identify the sender: its process or address, and its User-Agent header.
func (c *call) senderAttributes() (attributes []any) {
	if c.Conn != nil {
		attributes = c.Conn.LogAttributes()
	}
	userAgent := c.Header().Get("User-Agent")
	loggedLen := min(len(userAgent), maxUserAgent)
	return append(attributes, "user-agent", userAgent[:loggedLen])
}

// maxUserAgent is the maximum number of logged bytes of a User-Agent.
const maxUserAgent = 100

// respondError returns the response for a refusal, and counts the request by the result of the refusal.
func (c *call) respondError(refusal *reply) receiver.Response {
	c.Result = int(refusal.result)
	return c.respond(refusal)
}

// respond returns a response that writes answer in the protocol and the encoding of the request.
func (c *call) respond(answer *reply) receiver.Response {
	return func(w http.ResponseWriter) error {
		method := c.HTTP.Method
		if method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
		}
		if c.encoding == encodingGRPC {
			return answer.writeGRPC(w, method == http.MethodHead)
		}
		c.server.config.AllowedOrigins.allow(c.origin, w.Header())
		return answer.writeHTTP(w, c.encoding, c.signal)
	}
}
