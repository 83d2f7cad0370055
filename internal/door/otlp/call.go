package otlp

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
)

// call is a request that brings a signal, in whatever words.
type call struct {
	*door.Held
	server   *Server
	signal   signal
	encoding encoding
	isPacked bool   // the message is compressed with gzip
	message  []byte // of the body, as it came: without what gRPC has before it
	protobuf []byte // the message where it came in JSON; nil where it did not, or nobody reads it
	kept     kept
	parcel   parcel // that goes on
}

// refusal is why a request does not become a call.
type refusal struct {
	*reply
	result Result
}

// head is what says of a request how it is to be read.
type head struct {
	method, path, contentType     string
	contentEncoding, grpcEncoding string
	isHTTP2                       bool
}

// open makes a call of a request, up to its body.
func open(h head) (c *call, no *refusal) {
	c = &call{encoding: encodingOf(h.contentType)}
	s, isGRPC, found := signalOf(h.path)
	c.signal = s
	switch {
	case isGRPC != (c.encoding == inGRPC) && found:
		c.encoding = inJSON // which anybody can read
		no = refused(http.StatusUnsupportedMediaType, codeUnimplemented,
			"the content type is none of this path: /v1/... takes application/x-protobuf and "+
				"application/json, a method of gRPC application/grpc")
	case !found:
		no = refused(http.StatusNotFound, codeUnimplemented, "there is no such path here; OTLP has "+
			"/v1/traces, /v1/metrics and /v1/logs")
	case h.method != http.MethodPost:
		no = refused(http.StatusMethodNotAllowed, codeUnimplemented, "only POST is taken here")
	case c.encoding == unknownEncoding:
		no = refused(http.StatusUnsupportedMediaType, codeUnimplemented,
			"the content type is neither application/x-protobuf nor application/json")
	case isGRPC && !h.isHTTP2:
		no = refused(http.StatusHTTPVersionNotSupported, codeUnimplemented, "gRPC needs HTTP/2")
	default:
		no = c.openEncoded(h)
	}
	if c.encoding == unknownEncoding {
		c.encoding = inJSON
	}
	return c, no
}

func refused(status int, c code, said string) *refusal {
	no := &refusal{refuse(c, said), ResultRefused}
	no.http = status
	return no
}

// openEncoded finds out how the message is compressed.
func (c *call) openEncoded(h head) *refusal {
	said := h.contentEncoding
	if c.encoding == inGRPC {
		said = h.grpcEncoding
	}
	switch said {
	case "gzip":
		c.isPacked = true // of gRPC, if the message says so too
	case "", "identity":
	default:
		return refused(http.StatusUnsupportedMediaType, codeUnimplemented,
			fmt.Sprintf("the encoding %.20q is not known here; gzip is, and none", said))
	}
	return nil
}

// unknownEncoding is none of OTLP.
const unknownEncoding = inGRPC + 1

// encodingOf finds what a content type stands for.
func encodingOf(contentType string) encoding {
	switch contentType { // as nearly all write it
	case mediaProtobuf:
		return inProtobuf
	case mediaJSON:
		return inJSON
	case mediaGRPC, mediaGRPC + "+proto":
		return inGRPC
	}
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
	case media == mediaProtobuf:
		return inProtobuf
	case media == mediaJSON:
		return inJSON
	case media == mediaGRPC, strings.HasPrefix(media, mediaGRPC+"+"):
		return inGRPC
	}
	return unknownEncoding
}

// unframe takes the message out of a body that is here.
func (c *call) unframe() *refusal {
	c.message = c.Body.Bytes
	if c.encoding != inGRPC {
		return nil
	}
	message, isPacked, err := unframe(c.message)
	switch {
	case err != nil:
		return &refusal{refuse(codeInvalidArgument, err.Error()), ResultUnread}
	case isPacked && !c.isPacked:
		return &refusal{
			refuse(codeInternal, "the message is compressed, and grpc-encoding does not say how"),
			ResultUnread,
		}
	}
	c.message, c.isPacked = message, isPacked
	return nil
}

// notRead is the refusal of a body that could not be read, or not be inflated.
func (s *Server) notRead(err error) *refusal {
	switch {
	case errors.Is(err, errNeverFits):
		return &refusal{refuse(codeResourceExhausted, "what goes on of the request finds no room beside "+
			"it; have the SDK export less at a time, or raise --otlp-max-body-bytes"), ResultTooLarge}
	case errors.Is(err, bodies.ErrTooLarge):
		return &refusal{refuse(codeResourceExhausted, fmt.Sprintf(
			"the request has more than the %d bytes that one may have; have the SDK export less at a time, "+
				"or raise --otlp-max-body", s.config.MaxBody)), ResultTooLarge}
	case errors.Is(err, bodies.ErrNoRoom):
		return &refusal{later("there is no room for this request just now"), ResultBusy}
	case errors.Is(err, os.ErrDeadlineExceeded):
		no := &refusal{
			refuse(codeDeadlineExceeded, "the request did not come to its end in time"),
			ResultIncomplete,
		}
		no.http = http.StatusRequestTimeout
		return no
	}
	return &refusal{refuse(codeInvalidArgument, "the request is not whole: "+err.Error()), ResultIncomplete}
}

// notServed is what is said of what nobody takes here.
func notServed(s signal) *refusal {
	return refused(http.StatusNotFound, codeUnimplemented, s.String()+" are not taken here, as there is "+
		"nowhere to forward them to; "+
		"give the daemon --otlp-forward, or switch that exporter of the SDK off")
}
