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
	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
)

// call is a request that brings a signal, in whatever words.
type call struct {
	*door.Held
	server   *Server
	signal   signal
	encoding encoding
	packing  bodies.Packing // of the message
	message  []byte         // of the body, as it came: without what gRPC has before it
	protobuf []byte         // the message as any reader has it; nil where it came so, or nobody reads it
	kept     kept
	parcel   parcel // that goes on
}

// kept is what of a call goes on where only a part does.
type kept struct {
	room *bodies.Body // for that, before it is written
	// a message in protobuf, of gzip where the call's was compressed; nil where all goes on as it came
	body    *bodies.Body
	packing bodies.Packing
	isEmpty bool // nothing goes on
}

// parcel is a call's message as it goes on.
type parcel struct {
	message  []byte
	packing  bodies.Packing
	encoding encoding
}

// Open makes a call of a request, or refuses it.
func (s *Server) Open(h *door.Held) (door.Request, *door.Reply) {
	c := &call{Held: h, server: s, encoding: encodingOf(h.Fields.Get("Content-Type"))}
	if no := c.open(); no != nil {
		return nil, c.refuse(no)
	}
	return c, nil
}

// open reads the head of a request. What is refused in no encoding of its path is in JSON, which
// anybody can read, but for gRPC in another form than protobuf.
func (c *call) open() (no *reply) {
	s, isGRPC, found := signalOf(c.Path)
	c.signal = s
	isAnothers := found && isGRPC != (c.encoding == inGRPC) || c.encoding == unknownEncoding
	if isAnothers {
		c.encoding = inJSON
		if isGRPC && strings.HasPrefix(c.Fields.Get("Content-Type"), mediaGRPC+"+") {
			c.encoding = inGRPC
		}
	}
	isKnown := c.readPacking()
	switch {
	case !found:
		return refused(http.StatusNotFound, "there is no such path here; OTLP has /v1/traces, /v1/metrics "+
			"and /v1/logs")
	case c.Method != http.MethodPost:
		return refused(http.StatusMethodNotAllowed, "only POST is taken here")
	case isAnothers:
		return refused(http.StatusUnsupportedMediaType, "the content type is none of this path: /v1/... "+
			"takes application/x-protobuf and application/json, a method of gRPC application/grpc")
	case c.hasNoLength():
		return refuse(ResultRefused, otlpanswer.InvalidArgument, "a request of HTTP/1.0 must say its length")
	case isGRPC && !c.IsHTTP2():
		return refused(http.StatusHTTPVersionNotSupported, "gRPC needs HTTP/2")
	case !isKnown:
		return refused(http.StatusUnsupportedMediaType, "this compression is not known here; take none, or "+
			bodies.Packings+", by gRPC "+packingsOfGRPC)
	}
	if c.signal != signalTraces && !c.server.config.Forward.IsSet() {
		return refused(http.StatusNotFound, signals[s].name+" are not taken here, as there is nowhere to "+
			"forward them to; give the daemon --otlp-forward, or switch that exporter of the SDK off")
	}
	return nil
}

// hasNoLength says whether nobody can tell where a body ends: in HTTP/1.0 without a length, it ends
// before its first byte to whoever reads it.
func (c *call) hasNoLength() bool {
	r := c.HTTP
	return r != nil && !r.ProtoAtLeast(1, 1) && r.ContentLength == 0 && c.Fields.Get("Content-Length") == ""
}

// readPacking reads how the message is compressed; of gRPC, where the message says so too.
func (c *call) readPacking() (isKnown bool) {
	if c.encoding == inGRPC {
		c.packing, isKnown = packingOfGRPC(c.Fields.Get(headerGRPCEncoding))
	} else {
		c.packing, isKnown = bodies.PackingOf(c.Fields.Get("Content-Encoding"))
	}
	return isKnown
}

// encodingOf finds what a content type stands for.
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

// unframe takes the message out of a body that is here, or says why it is not.
func (c *call) unframe(broken error) (no *reply) {
	if broken != nil {
		return c.server.notRead(fmt.Errorf("the request is not whole: %w", broken), ResultIncomplete)
	}
	c.message = c.Body.Bytes
	if c.encoding != inGRPC {
		return nil
	}
	message, isPacked, err := unframe(c.message)
	switch {
	case err != nil:
		return refuse(ResultUnread, otlpanswer.InvalidArgument, err.Error())
	case isPacked && c.packing == bodies.Plain:
		return refuse(ResultUnread, otlpanswer.Internal,
			"the message is compressed, and grpc-encoding does not say how")
	}
	if c.message = message; !isPacked {
		c.packing = bodies.Plain
	}
	return nil
}

// notRead is the reply to a request that could not be read, or not be inflated: it is too large,
// finds no room, comes too late, or is another result.
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

// sender is whose call it is, nil where that is not known.
func (c *call) sender() any {
	if c.Conn == nil {
		return nil
	}
	return c.Conn.Sender()
}

// who says in the log who sends: a process or an address, and the SDK by its own words.
func (c *call) who() (said []any) {
	if c.Conn != nil {
		said = c.Conn.Who()
	}
	agent := c.Fields.Get("User-Agent")
	return append(said, "user-agent", agent[:min(len(agent), maxAgent)])
}

// maxAgent is how much of an SDK's name is logged.
const maxAgent = 100

// refuse has a call answered that ends here.
func (c *call) refuse(no *reply) *door.Reply {
	c.Result = int(no.result)
	return c.say(no)
}

// say has a call answered.
func (c *call) say(a *reply) *door.Reply {
	return &door.Reply{IsFinal: a.isFinal(c.encoding), Write: func(w http.ResponseWriter) error {
		if c.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
		}
		if c.encoding == inGRPC {
			return a.writeGRPC(w, c.Method == http.MethodHead)
		}
		return a.writeHTTP(w, c.encoding, c.signal)
	}}
}
