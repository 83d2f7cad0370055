package otlp

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// A unary gRPC call is a POST request whose body consists of a prefix and a message. Its response has the gRPC status
// in trailers.

// prefixLen is the length of the prefix: one byte with the compressed flag, and four bytes with the message's length.
const prefixLen = 5

var (
	errPrefix = errors.New("read gRPC message: the prefix of 5 bytes is missing")
	errFlag   = errors.New("read gRPC message: the compressed flag is neither 0 nor 1")
	errLength = errors.New("read gRPC message: the length differs from the one in the prefix")
)

// unframe returns the message in the body of a unary gRPC call.
func unframe(body []byte) (message []byte, isCompressed bool, err error) {
	if len(body) < prefixLen {
		return nil, false, errPrefix
	}
	flag, length := body[0], binary.BigEndian.Uint32(body[1:])
	if flag > 1 {
		return nil, false, errFlag
	}
	message = body[prefixLen:]
	if uint64(len(message)) != uint64(length) {
		return nil, false, errLength
	}
	return message, flag == 1, nil
}

// prefix returns the gRPC prefix of a message with a length.
func prefix(length int, isCompressed bool) (p [prefixLen]byte) {
	if isCompressed {
		p[0] = 1
	}
	binary.BigEndian.PutUint32(p[1:], uint32(length))
	return p
}

// grpcCompressions is the value of the grpc-accept-encoding header.
const grpcCompressions = "gzip,zstd,snappy"

// compressionFromGRPC returns the compression for a grpc-encoding header. With gRPC the name "snappy" means the framing
// format; with HTTP it means the block format.
func compressionFromGRPC(name string) (compression bodies.Compression, isKnown bool) {
	compression, isKnown = bodies.CompressionOf(name)
	switch compression {
	case bodies.Snappy:
		return bodies.SnappyFramed, isKnown
	case bodies.SnappyFramed:
		return bodies.Plain, false
	}
	return compression, isKnown
}

// nameInGRPC returns the value of the grpc-encoding header for a compression.
func nameInGRPC(compression bodies.Compression) string {
	if compression == bodies.SnappyFramed {
		compression = bodies.Snappy
	}
	return compression.String()
}

// Header and trailer fields of gRPC.
const (
	headerGRPCStatus   = "Grpc-Status"
	headerGRPCMessage  = "Grpc-Message"
	headerGRPCDetails  = "Grpc-Status-Details-Bin"
	headerGRPCEncoding = "Grpc-Encoding"
	headerGRPCAccepts  = "Grpc-Accept-Encoding"
)

// writeGRPC writes a gRPC response: the message, if the code is OK, and the status in trailers. The response to a HEAD
// request has no body, and its status is in the header.
func (a *reply) writeGRPC(w http.ResponseWriter, isHead bool) error {
	h := w.Header()
	h["Date"] = nil // gRPC responses have no date
	h.Set("Content-Type", mediaGRPC)
	h.Set(headerGRPCAccepts, grpcCompressions)
	if isHead {
		a.writeStatus(h)
		w.WriteHeader(http.StatusOK)
		return nil
	}
	h["Trailer"] = []string{headerGRPCStatus, headerGRPCMessage, headerGRPCDetails}
	w.WriteHeader(http.StatusOK)
	var err error
	if a.Code == otlpanswer.OK {
		p := prefix(len(a.message), false)
		_, err = w.Write(append(p[:], a.message...))
	}
	if flushErr := http.NewResponseController(w).Flush(); err == nil {
		err = flushErr
	}
	a.writeStatus(h)
	return err //nolint:wrapcheck // the receiver ignores its text
}

// writeStatus sets the gRPC fields of the status in a header or trailer.
func (a *reply) writeStatus(h http.Header) {
	h.Set(headerGRPCStatus, strconv.Itoa(int(a.Code)))
	if a.Message != "" {
		h.Set(headerGRPCMessage, url.PathEscape(a.Message)) // escapes more characters than gRPC requires
	}
	switch {
	case a.asIs != nil:
		h.Set(headerGRPCDetails, string(a.asIs))
	case a.Code != otlpanswer.OK:
		h.Set(headerGRPCDetails, base64.RawStdEncoding.EncodeToString(a.Protobuf()))
	}
}

// decodeBinary returns the value of a header field whose name ends in -bin. It returns nil if the value is invalid. The
// base64 padding is optional.
func decodeBinary(value string) []byte {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	if err != nil {
		return nil
	}
	return b
}

// healthPath is the Check method of the gRPC health service. Proxies and orchestrators call it to learn whether a
// server is ready. Its Watch method is unimplemented: gRPC clients then assume that the server is healthy, and notice
// its end by the closed connection.
const healthPath = "/grpc.health.v1.Health/Check"

// Encoded HealthCheckResponse messages.
const (
	serving    = "\x08\x01"
	notServing = "\x08\x02"
)

// check is a gRPC health check. It is never forwarded.
type check struct{ *call }

// Count returns the response to the health check.
func (c check) Count(readErr error) receiver.Response {
	refusal := c.unframe(readErr)
	if refusal == nil && c.compression != bodies.Plain {
		w := <-c.server.workers
		defer func() { c.server.workers <- w }()
		c.message, refusal = c.server.toProtobuf(c.call, w)
	}
	if refusal != nil {
		return c.refuse(refusal)
	}
	c.Result = int(ResultOther)
	switch {
	case !hasService(checkedService(c.message)):
		return c.respond(refuse(ResultOther, otlpanswer.NotFound, "unknown gRPC method; send OTLP to Export of "+
			"the trace, metrics or logs service"))
	case c.server.IsStopping():
		return c.respond(&reply{message: []byte(notServing)})
	}
	return c.respond(&reply{message: []byte(serving)})
}

// checkedService returns the service name in a HealthCheckRequest message. The name "" stands for the whole server.
func checkedService(message []byte) (name string) {
	const serviceField = 1
	for f := range protolite.Fields(message) {
		if f.Number == serviceField {
			name = string(f.Bytes)
		}
	}
	return name
}

// hasService reports whether there is a receiver of requests of a gRPC service. There always is for the name "".
func hasService(name string) bool {
	_, _, isKnown := signalOf("/" + name + exportMethod)
	return name == "" || isKnown
}
