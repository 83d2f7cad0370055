package otlp

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
)

// A unary call of gRPC is a POST whose body has five bytes before the message, and whose answer has
// its status in trailers.

// prefixLen is what a message has before it: whether it is compressed, and its length.
const prefixLen = 5

var (
	errPrefix = errors.New("read message: it has no prefix of 5 bytes")
	errFlag   = errors.New("read message: its first byte is neither 0 nor 1")
	errLength = errors.New("read message: its length is not what its prefix says, or there are several")
)

// unframe returns the one message that the body of a unary call has.
func unframe(body []byte) (message []byte, isPacked bool, err error) {
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

// prefix is what stands before a message of so many bytes.
func prefix(length int, isPacked bool) (p [prefixLen]byte) {
	if isPacked {
		p[0] = 1
	}
	binary.BigEndian.PutUint32(p[1:], uint32(length))
	return p
}

// packingsOfGRPC are the names of the compressions that are taken by gRPC.
const packingsOfGRPC = "gzip,zstd,snappy"

// packingOfGRPC finds what a compression's name stands for. Snappy is in frames there.
func packingOfGRPC(name string) (p bodies.Packing, isKnown bool) {
	p, isKnown = bodies.PackingOf(name)
	switch p {
	case bodies.Snappy:
		return bodies.SnappyFramed, isKnown
	case bodies.SnappyFramed:
		return bodies.Plain, false
	}
	return p, isKnown
}

// nameInGRPC is the name that a compression has there.
func nameInGRPC(p bodies.Packing) string {
	if p == bodies.SnappyFramed {
		p = bodies.Snappy
	}
	return p.String()
}

// The fields of gRPC's headers and trailers.
const (
	headerGRPCStatus   = "Grpc-Status"
	headerGRPCMessage  = "Grpc-Message"
	headerGRPCDetails  = "Grpc-Status-Details-Bin"
	headerGRPCEncoding = "Grpc-Encoding"
	headerGRPCAccepts  = "Grpc-Accept-Encoding"
)

// writeGRPC writes the message, where there is one, and the status in trailers, or in the header of
// an answer that has nothing but one.
func (a *reply) writeGRPC(w http.ResponseWriter, isHead bool) error {
	h := w.Header()
	h["Date"] = nil // which gRPC has none of
	h.Set("Content-Type", mediaGRPC)
	h.Set(headerGRPCAccepts, packingsOfGRPC)
	if isHead {
		a.writeStatus(h)
		w.WriteHeader(http.StatusOK)
		return http.NewResponseController(w).Flush() //nolint:wrapcheck // net/http's own; nobody reads it
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
	return err //nolint:wrapcheck // the same
}

// writeStatus sets the fields of a status.
func (a *reply) writeStatus(h http.Header) {
	h.Set(headerGRPCStatus, strconv.Itoa(int(a.Code)))
	if a.Said != "" {
		h.Set(headerGRPCMessage, url.PathEscape(a.Said)) // of which it asks no more than the percent sign
	}
	switch {
	case a.asIs != nil:
		h.Set(headerGRPCDetails, string(a.asIs))
	case a.Code != otlpanswer.OK:
		h.Set(headerGRPCDetails, base64.RawStdEncoding.EncodeToString(a.Protobuf()))
	}
}

// decoded is what stands in a header that ends in -bin, with or without padding.
func decoded(text string) []byte {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil
	}
	return b
}
