package otlp

import (
	"mime"
	"net/http"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
)

// Open makes a call of a request, or refuses it.
func (s *Server) Open(h *door.Held) (door.Request, *door.Reply) {
	c := &call{Held: h, server: s, encoding: encodingOf(h.Fields.Get("Content-Type"))}
	if s.config.Origins != nil {
		c.origin = h.Fields.Get("Origin")
	}
	if c.isPreflight() {
		return nil, c.answerPreflight()
	}
	if no := c.open(); no != nil {
		return nil, c.refuse(no)
	}
	if c.signal == signalHealth {
		return check{c}, nil
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
	if !c.server.takes(s) {
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

// isPreflight says whether a browser asks what a page's script may send.
func (c *call) isPreflight() bool {
	if c.origin == "" || c.Method != http.MethodOptions {
		return false
	}
	_, isGRPC, found := signalOf(c.Path)
	return found && !isGRPC && c.Fields.Get("Access-Control-Request-Method") != ""
}

// What a browser is told: for how long it need not ask again, which is what Chromium keeps at most. The
// names of fields that it asks for have a bound, as they are said again.
const (
	preflightAge = "7200"
	mostAsked    = 1 << 10 // bytes
)

// answerPreflight answers a browser.
func (c *call) answerPreflight() *door.Reply {
	asked := c.Fields.Get("Access-Control-Request-Headers")
	c.encoding = inJSON
	if !c.server.config.Origins.has(c.origin) || len(asked) > mostAsked {
		return c.refuse(refuse(ResultRefused, otlpanswer.PermissionDenied, "pages of this origin may not "+
			"send here, or not so many fields; name it in the daemon's --otlp-cors-origin"))
	}
	c.Result = int(ResultOther)
	return &door.Reply{IsFinal: true, Write: func(w http.ResponseWriter) error {
		h := w.Header()
		c.server.config.Origins.allow(c.origin, h)
		h.Add("Vary", "Access-Control-Request-Headers")
		h.Set("Access-Control-Allow-Methods", http.MethodPost)
		if h.Set("Access-Control-Max-Age", preflightAge); asked != "" {
			h.Set("Access-Control-Allow-Headers", asked)
		}
		w.WriteHeader(http.StatusNoContent)
		return http.NewResponseController(w).Flush() //nolint:wrapcheck // net/http's own; nobody reads it
	}}
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
