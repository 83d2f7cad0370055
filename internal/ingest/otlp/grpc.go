package otlp

import (
	"cmp"
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

// unframe splits the body of a unary gRPC call into the compressed flag and the message. It returns an error if the
// flag is invalid, or if the body does not contain exactly one message. message shares the memory of body.
func unframe(body []byte) (message []byte, isCompressed bool, err error) {
	if len(body) < prefixLen {
		return nil, false, errPrefix
	}
	compressedFlag := body[0]
	if compressedFlag > 1 {
		return nil, false, errFlag
	}
	length := binary.BigEndian.Uint32(body[1:prefixLen])
	message = body[prefixLen:]
	if uint64(len(message)) != uint64(length) {
		return nil, false, errLength
	}
	return message, compressedFlag == 1, nil
}

// grpcPrefix returns the prefix of a gRPC message: the compressed flag and the length of the message.
func grpcPrefix(length int, isCompressed bool) (encoded [prefixLen]byte) {
	if isCompressed {
		encoded[0] = 1
	}
	binary.BigEndian.PutUint32(encoded[1:], uint32(length))
	return encoded
}

// frame returns a copy of an uncompressed message with the prefix of gRPC.
func frame(message []byte) []byte {
	messagePrefix := grpcPrefix(len(message), false)
	return append(messagePrefix[:], message...)
}

// grpcCompressions is the value of the grpc-accept-encoding header.
const grpcCompressions = "gzip,zstd,snappy"

// compressionFromGRPC returns the compression for the value of a grpc-encoding header. isKnown is false if it is not
// supported. In gRPC, the framing format of snappy is named "snappy". In HTTP, it is named "x-snappy-framed", and
// "snappy" is the block format.
func compressionFromGRPC(name string) (compression bodies.Compression, isKnown bool) {
	switch strings.ToLower(name) {
	case "snappy":
		return bodies.SnappyFramed, true
	case "x-snappy-framed":
		return bodies.Plain, false
	}
	return bodies.CompressionOf(name)
}

// nameInGRPC returns the value of the grpc-encoding header for a compression. The name "snappy" means the framing format
// of snappy in gRPC, but the block format in HTTP.
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

// writeGRPC writes r as a gRPC response: the message if r is a success, and then the status as trailers. The
// response to a HEAD request has no body, so the status is in the header.
func (r *reply) writeGRPC(w http.ResponseWriter, isHead bool) error {
	header := w.Header()
	header["Date"] = nil // gRPC responses have no date
	header.Set("Content-Type", mediaGRPC)
	header.Set(headerGRPCAccepts, grpcCompressions)
	if isHead {
		r.setGRPCStatus(header)
		w.WriteHeader(http.StatusOK)
		return nil
	}
	header["Trailer"] = []string{headerGRPCStatus, headerGRPCMessage, headerGRPCDetails}
	w.WriteHeader(http.StatusOK)
	var writeErr error
	if r.Code == otlpanswer.OK {
		_, writeErr = w.Write(frame(r.responseBody))
	}
	flushErr := http.NewResponseController(w).Flush()
	r.setGRPCStatus(header) // fields that are set after the body become trailers
	return cmp.Or(writeErr, flushErr)
}

// setGRPCStatus sets the gRPC status code in a header or a trailer. For an error, it also sets the message and the details.
func (r *reply) setGRPCStatus(header http.Header) {
	header.Set(headerGRPCStatus, strconv.Itoa(int(r.Code)))
	if r.Message != "" {
		header.Set(headerGRPCMessage, url.PathEscape(r.Message)) // escapes more characters than gRPC requires
	}
	if r.areDetailsCopied {
		header.Set(headerGRPCDetails, r.copiedDetails)
	} else if r.Code != otlpanswer.OK {
		header.Set(headerGRPCDetails, base64.RawStdEncoding.EncodeToString(r.Protobuf()))
	}
}

// decodeBinary decodes the value of a gRPC header field whose name ends in -bin. It returns nil if the value is not valid
// base64. The padding of base64 is optional.
func decodeBinary(value string) []byte {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	if err != nil {
		return nil
	}
	return decoded
}

// healthPath is the Check method of the gRPC health service. Proxies and orchestrators call it to learn whether a
// server is ready. Its Watch method is unimplemented: gRPC clients then assume that the server is healthy, and notice
// its end by the closed connection.
const healthPath = "/grpc.health.v1.Health/Check"

// Encoded HealthCheckResponse messages.
const (
	servingMessage    = "\x08\x01"
	notServingMessage = "\x08\x02"
)

// healthCheck is a gRPC health check. It is never forwarded.
type healthCheck struct{ *call }

// Handle returns the response to a gRPC health check: serving, or not serving while the daemon shuts down. If the
// request contains the name of an unknown service, the response is an error. readErr is the error of reading the
// body.
func (c healthCheck) Handle(readErr error) receiver.Response {
	if refusal := c.readMessage(readErr); refusal != nil {
		return c.respondError(refusal)
	}
	if refusal := c.decompress(); refusal != nil {
		return c.respondError(refusal)
	}
	c.Result = int(ResultOther)
	service := checkedService(c.message)
	if !hasService(service) {
		return c.respond(errorReply(otlpanswer.NotFound, "unknown gRPC service; send the name of the trace, "+
			"metrics or logs service of OTLP, or an empty name"))
	}
	message := servingMessage
	if c.server.IsStopping() {
		message = notServingMessage
	}
	return c.respond(&reply{responseBody: []byte(message)})
}

// decompress decompresses the message of the health check. It returns a refusal if that fails.
func (c healthCheck) decompress() (refusal *reply) {
	if c.compression == bodies.Plain {
		return nil
	}
	ws := <-c.server.workspaces
	defer func() { c.server.workspaces <- ws }()
	c.message, refusal = c.server.toProtobuf(c.call, ws)
	return refusal
}

// checkedService returns the service name in a HealthCheckRequest message. An empty name means the whole server.
func checkedService(message []byte) (name string) {
	const serviceField = 1
	for field := range protolite.Fields(message) {
		if field.Number == serviceField {
			name = string(field.Bytes)
		}
	}
	return name
}

// hasService reports whether the server implements the gRPC service with this name. An empty name means the whole
// server.
func hasService(name string) bool {
	_, _, isKnown := signalOf("/" + name + exportMethod)
	return name == "" || isKnown
}
