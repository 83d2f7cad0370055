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

// call is a request in any encoding of OTLP.
type call struct {
	*receiver.BufferedRequest
	server      *Server
	signal      signal
	encoding    encoding
	origin      string             // of a page whose script sends, as its browser says; "" otherwise
	compression bodies.Compression // of the message
	message     []byte             // of the body as it came, without the prefix of gRPC
	protobuf    []byte             // the decompressed message in protobuf; nil if it came so or was not read
	sampled     sampled
	encoded     encodedMessage // that is forwarded
}

// signal is an index in signals.
type signal uint8

const (
	signalTraces signal = iota
	signalMetrics
	signalLogs
	signalHealth // gRPC's health check of the daemon
)

// signals have names in metrics and responses, paths of OTLP/HTTP below a base and of OTLP/gRPC, and a
// field of a partial success in JSON.
var signals = [...]struct{ name, http, grpc, rejected string }{
	{"traces", "/v1/traces", grpcPath("trace.v1.Trace"), "rejectedSpans"},
	{"metrics", "/v1/metrics", grpcPath("metrics.v1.Metrics"), "rejectedDataPoints"},
	{"logs", "/v1/logs", grpcPath("logs.v1.Logs"), "rejectedLogRecords"},
}

const (
	grpcPaths    = "/opentelemetry.proto."
	exportMethod = "/Export"
)

func grpcPath(service string) string {
	return grpcPaths + "collector." + service + "Service" + exportMethod
}

// signalOf returns the signal of a path.
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

// encoding is the encoding of a message.
type encoding uint8

const (
	inProtobuf encoding = iota // OTLP/HTTP
	inJSON
	inGRPC
	unknownEncoding
)

// The media types of OTLP, and that of a web page.
const (
	mediaProtobuf = "application/x-protobuf"
	mediaJSON     = "application/json"
	mediaGRPC     = "application/grpc"
	mediaPage     = "text/html"
)

var mediaOf = [...]string{inProtobuf: mediaProtobuf, inJSON: mediaJSON, inGRPC: mediaGRPC}

// encodingOf returns the encoding of a content type.
func encodingOf(contentType string) encoding {
	media := contentType
	for again := true; ; again = false {
		switch media {
		case mediaProtobuf:
			return inProtobuf
		case mediaJSON:
			return inJSON
		case mediaGRPC, mediaGRPC + "+proto":
			return inGRPC
		}
		if !again { // nearly all write it without parameters
			return unknownEncoding
		}
		media, _, _ = mime.ParseMediaType(contentType)
	}
}

// classify makes a call of a request, or refuses it.
func (s *Server) classify(r *receiver.BufferedRequest) (receiver.Exchange, receiver.Response) {
	c := &call{BufferedRequest: r, server: s, encoding: encodingOf(r.Header().Get("Content-Type"))}
	if s.config.Origins != nil {
		c.origin = r.Header().Get("Origin")
	}
	if c.isPreflight() {
		return nil, c.answerPreflight()
	}
	if no := c.classify(); no != nil {
		return nil, c.refuse(no)
	}
	if c.signal == signalHealth {
		return check{c}, nil
	}
	return c, nil
}

// classify reads the head of a request. A refusal in no encoding of its path is in JSON, which
// anybody can read, except for gRPC with messages in another form than protobuf.
func (c *call) classify() (no *reply) {
	s, isGRPC, found := signalOf(c.HTTP.URL.Path)
	c.signal = s
	isOtherType := found && isGRPC != (c.encoding == inGRPC) || c.encoding == unknownEncoding
	if isOtherType {
		c.encoding = inJSON
		if isGRPC && strings.HasPrefix(c.Header().Get("Content-Type"), mediaGRPC+"+") {
			c.encoding = inGRPC
		}
	}
	isKnown := c.readCompression()
	switch {
	case !found:
		return refused(http.StatusNotFound, "there is no such path here; OTLP has /v1/traces, /v1/metrics "+
			"and /v1/logs")
	case c.HTTP.Method != http.MethodPost:
		return refused(http.StatusMethodNotAllowed, "only POST is taken here")
	case isOtherType:
		return refused(http.StatusUnsupportedMediaType, "the content type is none of this path: /v1/... "+
			"takes application/x-protobuf and application/json, a method of gRPC application/grpc")
	case c.hasNoLength():
		return refuse(ResultRefused, otlpanswer.InvalidArgument, "a request of HTTP/1.0 must say its length")
	case isGRPC && c.HTTP.ProtoMajor != 2:
		return refused(http.StatusHTTPVersionNotSupported, "gRPC needs HTTP/2")
	case !isKnown:
		return refused(http.StatusUnsupportedMediaType, "this compression is not known here; take none, or "+
			bodies.Compressions+", by gRPC "+compressionsOfGRPC)
	}
	if !c.server.accepts(s) {
		c.server.unforwarded[s].Add(1)
		return refused(http.StatusNotFound, signals[s].name+" are not taken here, as there is nowhere to "+
			"forward them to; give the daemon --otlp-forward, or switch that exporter of the SDK off")
	}
	return nil
}

// hasNoLength reports whether the end of the body is unknown: to net/http a body of HTTP/1.0 without
// a length is empty.
func (c *call) hasNoLength() bool {
	r := c.HTTP
	return !r.ProtoAtLeast(1, 1) && r.ContentLength == 0 && r.Header.Get("Content-Length") == ""
}

// readCompression reads the name of the compression; with gRPC the message says whether it applies.
func (c *call) readCompression() (isKnown bool) {
	if c.encoding == inGRPC {
		c.compression, isKnown = compressionOfGRPC(c.Header().Get(headerGRPCEncoding))
	} else {
		c.compression, isKnown = bodies.CompressionOf(c.Header().Get("Content-Encoding"))
	}
	return isKnown
}

// unframe takes the message out of the body, or refuses a body that was not read whole.
func (c *call) unframe(readErr error) (no *reply) {
	if readErr != nil {
		return c.server.notRead(fmt.Errorf("the request is not whole: %w", readErr), ResultIncomplete)
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
			"the message is compressed, and grpc-encoding does not say how")
	}
	if c.message = message; !isCompressed {
		c.compression = bodies.Plain
	}
	return nil
}

// notRead returns the reply to a request that could not be read or decompressed: it is too large, finds
// no room, comes too late, or has another result.
func (s *Server) notRead(err error, result Result) (no *reply) {
	switch {
	case errors.Is(err, bodies.ErrTooLarge):
		return refuse(ResultTooLarge, otlpanswer.ResourceExhausted, fmt.Sprintf(
			"the request has more than the %d bytes that one may have; have the SDK export less at a time, "+
				"or raise --otlp-max-body", s.config.MaxBody))
	case errors.Is(err, bodies.ErrNoRoom):
		return later(ResultBusy, "there is no room for this request just now")
	case errors.Is(err, os.ErrDeadlineExceeded):
		no = refuse(result, otlpanswer.DeadlineExceeded, "the request did not come to its end in time")
		no.http = http.StatusRequestTimeout
		return no
	}
	return refuse(result, otlpanswer.InvalidArgument, err.Error())
}

// who returns attributes for the log that name the sender.
func (c *call) who() (said []any) {
	if c.Conn != nil {
		said = c.Conn.LogAttributes()
	}
	agent := c.Header().Get("User-Agent")
	return append(said, "user-agent", agent[:min(len(agent), maxAgent)])
}

// maxAgent bounds the part of a User-Agent that is logged.
const maxAgent = 100

// refuse ends a call that is not forwarded.
func (c *call) refuse(no *reply) receiver.Response {
	c.Result = int(no.result)
	return c.respond(no)
}

// respond writes a reply in the encoding of the call.
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
