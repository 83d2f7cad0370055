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

// A unary call of gRPC is a POST whose body is a prefix and a message, and whose response has its status
// in trailers.

// prefixLen is the length of the prefix: whether the message is compressed, and its length.
const prefixLen = 5

var (
	errPrefix = errors.New("read message: it has no prefix of 5 bytes")
	errFlag   = errors.New("read message: its first byte is neither 0 nor 1")
	errLength = errors.New("read message: its length is not what its prefix says, or there are several")
)

// unframe returns the message of a unary call's body.
func unframe(body []byte) (message []byte, isCompressed bool, err error) {
	if len(body) < prefixLen {
		return nil, false, errPrefix
	}
	if body[0] > 1 {
		return nil, false, errFlag
	}
	message = body[prefixLen:]
	if uint64(len(message)) != uint64(binary.BigEndian.Uint32(body[1:])) {
		return nil, false, errLength
	}
	return message, body[0] == 1, nil
}

// prefix returns the prefix of a message.
func prefix(length int, isCompressed bool) (p [prefixLen]byte) {
	if isCompressed {
		p[0] = 1
	}
	binary.BigEndian.PutUint32(p[1:], uint32(length))
	return p
}

// compressionsOfGRPC are the names of the supported compressions.
const compressionsOfGRPC = "gzip,zstd,snappy"

// compressionOfGRPC returns the compression of a name. Snappy is in frames with gRPC.
func compressionOfGRPC(name string) (p bodies.Compression, isKnown bool) {
	p, isKnown = bodies.CompressionOf(name)
	switch p {
	case bodies.Snappy:
		return bodies.SnappyFramed, isKnown
	case bodies.SnappyFramed:
		return bodies.Plain, false
	}
	return p, isKnown
}

// nameInGRPC returns the name of a compression with gRPC.
func nameInGRPC(p bodies.Compression) string {
	if p == bodies.SnappyFramed {
		p = bodies.Snappy
	}
	return p.String()
}

// Fields of the headers and trailers of gRPC.
const (
	headerGRPCStatus   = "Grpc-Status"
	headerGRPCMessage  = "Grpc-Message"
	headerGRPCDetails  = "Grpc-Status-Details-Bin"
	headerGRPCEncoding = "Grpc-Encoding"
	headerGRPCAccepts  = "Grpc-Accept-Encoding"
)

// writeGRPC writes the message, if there is one, and the status in trailers; or the status in the header of
// a response without a body.
func (a *reply) writeGRPC(w http.ResponseWriter, isHead bool) error {
	h := w.Header()
	h["Date"] = nil // gRPC has none
	h.Set("Content-Type", mediaGRPC)
	h.Set(headerGRPCAccepts, compressionsOfGRPC)
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
	if flushed := http.NewResponseController(w).Flush(); err == nil {
		err = flushed
	}
	a.writeStatus(h)
	return err //nolint:wrapcheck // nobody reads it
}

// writeStatus sets the header fields of a status.
func (a *reply) writeStatus(h http.Header) {
	h.Set(headerGRPCStatus, strconv.Itoa(int(a.Code)))
	if a.Message != "" {
		h.Set(headerGRPCMessage, url.PathEscape(a.Message)) // gRPC escapes fewer characters
	}
	switch {
	case a.asIs != nil:
		h.Set(headerGRPCDetails, string(a.asIs))
	case a.Code != otlpanswer.OK:
		h.Set(headerGRPCDetails, base64.RawStdEncoding.EncodeToString(a.Protobuf()))
	}
}

// decoded returns the value of a header field that ends in -bin, with or without padding.
func decoded(text string) []byte {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil
	}
	return b
}

// healthPath is the Check method of gRPC's health service, by which proxies and orchestrators ask whether a
// server serves. Its Watch is answered UNIMPLEMENTED: gRPC's clients then take the server for healthy and
// stop asking, and the end of their connection tells them the rest.
const healthPath = "/grpc.health.v1.Health/Check"

// The responses to a check in protobuf.
const (
	serving    = "\x08\x01"
	notServing = "\x08\x02"
)

// check is a call that asks for the health of a service. It is never forwarded.
type check struct{ *call }

// Count answers it.
func (c check) Count(readErr error) receiver.Response {
	no := c.unframe(readErr)
	if no == nil && c.compression != bodies.Plain {
		w := <-c.server.workers
		defer func() { c.server.workers <- w }()
		c.message, no = c.server.readable(c.call, w)
	}
	if no != nil {
		return c.refuse(no)
	}
	c.Result = int(ResultOther)
	switch {
	case !c.server.hasService(serviceIn(c.message)):
		return c.respond(refuse(ResultOther, otlpanswer.NotFound, "there is no such service here"))
	case c.server.IsStopping():
		return c.respond(&reply{message: []byte(notServing)})
	}
	return c.respond(&reply{message: []byte(serving)})
}

// serviceIn returns the service that a check asks for, "" for the server as a whole.
func serviceIn(message []byte) (name string) {
	for f := range protolite.Fields(message) {
		if f.Number == 1 {
			name = string(f.Bytes)
		}
	}
	return name
}

// hasService reports whether a service exists here.
func (s *Server) hasService(name string) bool {
	found, _, isKnown := signalOf("/" + name + exportMethod)
	return name == "" || isKnown && s.accepts(found)
}

// accepts reports whether requests of a signal are accepted: metrics and logs only if they are forwarded.
func (s *Server) accepts(of signal) bool {
	return of == signalTraces || of == signalHealth || s.config.Forward.IsSet()
}
