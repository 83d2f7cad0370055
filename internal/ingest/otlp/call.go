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
	encoded     encodedMessage // forwarded message
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
	http     string // path with OTLP/HTTP, relative to the base URL
	grpc     string // path with OTLP/gRPC
	rejected string // JSON name of the partial-success field with the number of rejected items
}{
	{"traces", "/v1/traces", grpcPath("trace.v1.Trace"), "rejectedSpans"},
	{"metrics", "/v1/metrics", grpcPath("metrics.v1.Metrics"), "rejectedDataPoints"},
	{"logs", "/v1/logs", grpcPath("logs.v1.Logs"), "rejectedLogRecords"},
}

const (
	grpcPaths    = "/opentelemetry.proto."
	exportMethod = "/Export"
)

// grpcPath returns the path of a service's Export method.
func grpcPath(service string) string {
	return grpcPaths + "collector." + service + "Service" + exportMethod
}

// signalOf returns the signal of a request path. isGRPC is also valid for a path that was not found.
func signalOf(path string) (s signal, isGRPC, found bool) {
	for i := range signals {
		switch path {
		case signals[i].http:
			return signal(i), false, true
		case signals[i].grpc:
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
	inProtobuf encoding = iota // OTLP/HTTP with protobuf
	inJSON                     // OTLP/HTTP with JSON
	inGRPC                     // OTLP/gRPC
	unknownEncoding
)

// The media types of OTLP, and the media type of a web page.
const (
	mediaProtobuf = "application/x-protobuf"
	mediaJSON     = "application/json"
	mediaGRPC     = "application/grpc"
	mediaPage     = "text/html"
)

var mediaOf = [...]string{inProtobuf: mediaProtobuf, inJSON: mediaJSON, inGRPC: mediaGRPC}

// encodingOf returns the encoding for a Content-Type header. It parses the header only if the whole value is not a
// known media type, since nearly all SDKs send no parameters.
func encodingOf(contentType string) encoding {
	if e := encodingOfMedia(contentType); e != unknownEncoding {
		return e
	}
	media, _, _ := mime.ParseMediaType(contentType)
	return encodingOfMedia(media)
}

func encodingOfMedia(media string) encoding {
	switch media {
	case mediaProtobuf:
		return inProtobuf
	case mediaJSON:
		return inJSON
	case mediaGRPC, mediaGRPC + "+proto":
		return inGRPC
	}
	return unknownEncoding
}

// classify returns the exchange for a request, or the response that refuses the request.
func (s *Server) classify(r *receiver.BufferedRequest) (receiver.Exchange, receiver.Response) {
	c := &call{BufferedRequest: r, server: s, encoding: encodingOf(r.Header().Get("Content-Type"))}
	if s.config.Origins != nil {
		c.origin = r.Header().Get("Origin")
	}
	if c.isPreflight() {
		return nil, c.answerPreflight()
	}
	if refusal := c.readHead(); refusal != nil {
		return nil, c.refuse(refusal)
	}
	if c.signal == signalHealth {
		return check{c}, nil
	}
	return c, nil
}

// readHead sets the signal, the encoding and the compression of the call. It returns the refusal of an unsupported
// request, and nil otherwise. If the content type is wrong for the path, the refusal is in JSON, which every sender
// can read, or in gRPC if the content type is a gRPC one.
func (c *call) readHead() (refusal *reply) {
	s, isGRPC, found := signalOf(c.HTTP.URL.Path)
	c.signal = s
	isWrongType := found && isGRPC != (c.encoding == inGRPC) || c.encoding == unknownEncoding
	if isWrongType {
		c.encoding = inJSON
		if isGRPC && strings.HasPrefix(c.Header().Get("Content-Type"), mediaGRPC+"+") {
			c.encoding = inGRPC
		}
	}
	isKnown := c.readCompression()
	switch {
	case !found:
		return refused(http.StatusNotFound, "unknown path; send OTLP to /v1/traces, /v1/metrics or /v1/logs")
	case c.HTTP.Method != http.MethodPost:
		return refused(http.StatusMethodNotAllowed, "only POST is supported")
	case isWrongType:
		return refused(http.StatusUnsupportedMediaType, "unsupported Content-Type; /v1/... accepts "+
			"application/x-protobuf and application/json, a gRPC method application/grpc")
	case c.hasNoLength():
		return refuse(ResultRefused, otlpanswer.InvalidArgument, "an HTTP/1.0 request must declare its length")
	case isGRPC && c.HTTP.ProtoMajor != 2:
		return refused(http.StatusHTTPVersionNotSupported, "gRPC needs HTTP/2")
	case !isKnown:
		return refused(http.StatusUnsupportedMediaType, "unsupported compression; use none, or "+
			bodies.Compressions+", over gRPC "+grpcCompressions)
	}
	return nil
}

// hasNoLength reports whether the request is an HTTP/1.0 request without a Content-Length header. net/http treats the
// body of such a request as empty, so its spans would be lost.
func (c *call) hasNoLength() bool {
	r := c.HTTP
	return !r.ProtoAtLeast(1, 1) && r.ContentLength == 0 && r.Header.Get("Content-Length") == ""
}

// readCompression sets the compression that the header names, and reports whether it is supported. With gRPC, a flag
// before the message specifies whether the message is compressed.
func (c *call) readCompression() (isKnown bool) {
	if c.encoding == inGRPC {
		c.compression, isKnown = compressionFromGRPC(c.Header().Get(headerGRPCEncoding))
	} else {
		c.compression, isKnown = bodies.CompressionOf(c.Header().Get("Content-Encoding"))
	}
	return isKnown
}

// unframe sets the message and its compression from the body. It returns the refusal of a body that was read with an
// error, or that has an invalid gRPC prefix.
func (c *call) unframe(readErr error) (refusal *reply) {
	if readErr != nil {
		return c.server.refuseUnreadable(fmt.Errorf("read request: the body is incomplete: "+
			"%w", readErr), ResultIncomplete)
	}
	c.message = c.Body.Bytes
	if c.encoding != inGRPC {
		return nil
	}
	message, isCompressed, err := unframe(c.message)
	switch {
	case err != nil:
		return refuse(ResultUnread, otlpanswer.InvalidArgument, err.Error())
	case isCompressed && c.compression == bodies.Plain:
		return refuse(ResultUnread, otlpanswer.Internal,
			"the message is compressed, but grpc-encoding names no compression")
	}
	if c.message = message; !isCompressed {
		c.compression = bodies.Plain
	}
	return nil
}

// refuseUnreadable returns the reply to a request that can't be read, decompressed or parsed. result is the result if
// the cause is neither a limit on memory nor the maximum body size.
func (s *Server) refuseUnreadable(err error, result Result) (refusal *reply) {
	switch {
	case errors.Is(err, bodies.ErrTooLarge):
		return refuse(ResultTooLarge, otlpanswer.ResourceExhausted, fmt.Sprintf(
			"the request has more than the maximum of %d bytes; configure smaller batches in the SDK, or raise "+
				"--otlp-max-body", s.config.MaxBody))
	case errors.Is(err, bodies.ErrNoRoom):
		return later(ResultBusy, "all memory for requests is in use; retry later, or raise --otlp-max-body-bytes")
	case errors.Is(err, os.ErrDeadlineExceeded):
		refusal = refuse(result, otlpanswer.DeadlineExceeded, "the request did not arrive completely in time")
		refusal.http = http.StatusRequestTimeout
		return refusal
	}
	return refuse(result, otlpanswer.InvalidArgument, err.Error())
}

// senderAttributes returns log attributes that identify the sender: its process or address, and its User-Agent.
func (c *call) senderAttributes() (attributes []any) {
	if c.Conn != nil {
		attributes = c.Conn.LogAttributes()
	}
	agent := c.Header().Get("User-Agent")
	return append(attributes, "user-agent", agent[:min(len(agent), maxAgent)])
}

// maxAgent is the maximum number of logged bytes of a User-Agent.
const maxAgent = 100

// refuse sets the result of the call to that of a refusal, and returns the refusal as a response.
func (c *call) refuse(refusal *reply) receiver.Response {
	c.Result = int(refusal.result)
	return c.respond(refusal)
}

// respond returns a response with a reply in the encoding of the call.
func (c *call) respond(a *reply) receiver.Response {
	return func(w http.ResponseWriter) error {
		if c.HTTP.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
		}
		if c.encoding == inGRPC {
			return a.writeGRPC(w, c.HTTP.Method == http.MethodHead)
		}
		c.server.config.Origins.allow(c.origin, w.Header())
		return a.writeHTTP(w, c.encoding, c.signal)
	}
}
