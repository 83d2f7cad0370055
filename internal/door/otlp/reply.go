package otlp

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reply is what an SDK is told, whatever it speaks.
type reply struct {
	status
	// http is the status of HTTP where it says more than the code does, 0 elsewhere.
	http int
	// message is an Export...Response in protobuf, where the code is OK.
	message []byte
	// asIs is the body of a destination's answer, for who speaks as the destination does; nil
	// where there is none. With HTTP it may be of any type, with gRPC it is the status's details.
	asIs     []byte
	asIsType string
}

// taken is the reply to a request that was taken whole.
func taken() *reply { return &reply{} }

func refuse(c code, said string) *reply { return &reply{status: status{code: c, said: said}} }

// later has an SDK try again.
func later(said string) *reply {
	return &reply{status: status{code: codeUnavailable, said: said, retry: retryAfter}}
}

// retryAfter is when an SDK may try again what found no room: most SDKs wait for as long or
// longer by themselves.
const retryAfter = time.Second

// The encodings of a call.
type encoding uint8

const (
	inProtobuf encoding = iota // OTLP/HTTP
	inJSON
	inGRPC
)

// The media types of OTLP.
const (
	mediaProtobuf = "application/x-protobuf"
	mediaJSON     = "application/json"
	mediaGRPC     = "application/grpc"
)

var mediaOf = [...]string{inProtobuf: mediaProtobuf, inJSON: mediaJSON, inGRPC: mediaGRPC}

// isFinal says whether an answer ends the matter for its sender: it has no reason to send
// the same again.
func (a *reply) isFinal() bool { return !a.code.isRetryable(a.retry > 0) }

// write answers a call, and reports whether all of it was written.
func (a *reply) write(w http.ResponseWriter, e encoding, s signal) error {
	if e == inGRPC {
		return a.writeGRPC(w)
	}
	return a.writeHTTP(w, e, s)
}

func (a *reply) writeHTTP(w http.ResponseWriter, e encoding, s signal) error {
	h, httpStatus := w.Header(), a.http
	if httpStatus == 0 {
		httpStatus = a.code.httpStatus(a.retry > 0)
	}
	body, media := a.asIs, a.asIsType
	switch {
	case a.asIs != nil:
	case a.code == codeOK && e == inJSON:
		body = responseJSON(a.message, s)
	case a.code == codeOK:
		body = a.message
	case e == inJSON:
		body = a.json()
	default:
		body = a.protobuf()
	}
	if media == "" {
		media = mediaOf[e]
	}
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if a.retry > 0 {
		h.Set("Retry-After", a.retryAfter())
	}
	w.WriteHeader(httpStatus)
	if _, err := w.Write(body); err != nil {
		return err //nolint:wrapcheck // net/http's own; nobody reads it
	}
	return http.NewResponseController(w).Flush() //nolint:wrapcheck // the same
}

// The fields of gRPC's trailers.
const (
	headerGRPCStatus   = "Grpc-Status"
	headerGRPCMessage  = "Grpc-Message"
	headerGRPCDetails  = "Grpc-Status-Details-Bin"
	headerGRPCEncoding = "Grpc-Encoding"
	headerGRPCAccepts  = "Grpc-Accept-Encoding"
)

// writeGRPC writes the message, where there is one, and the status in trailers.
func (a *reply) writeGRPC(w http.ResponseWriter) error {
	h := w.Header()
	h["Date"] = nil // which gRPC has none of
	h.Set("Content-Type", mediaGRPC)
	h["Trailer"] = []string{headerGRPCStatus, headerGRPCMessage, headerGRPCDetails}
	if a.code == codeUnimplemented {
		h.Set(headerGRPCAccepts, "gzip")
	}
	w.WriteHeader(http.StatusOK)
	var err error
	if a.code == codeOK {
		p := prefix(len(a.message), false)
		_, err = w.Write(append(p[:], a.message...))
	}
	if flushed := http.NewResponseController(w).Flush(); err == nil {
		err = flushed
	}
	h.Set(headerGRPCStatus, strconv.Itoa(int(a.code)))
	if a.said != "" {
		h.Set(headerGRPCMessage, percentEncoded(a.said))
	}
	switch {
	case a.asIs != nil:
		h.Set(headerGRPCDetails, string(a.asIs))
	case a.code != codeOK:
		h.Set(headerGRPCDetails, a.header())
	}
	return err //nolint:wrapcheck // net/http's own; nobody reads it
}

// percentEncoded is a text as grpc-message has it: printable ASCII but for the percent sign.
func percentEncoded(text string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}
