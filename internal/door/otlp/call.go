package otlp

import (
	"errors"
	"fmt"
	"net/http"
	"os"

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
	origin   string         // of the page whose script sends, as its browser says; "" of most
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
		c.server.config.Origins.allow(c.origin, w.Header())
		return a.writeHTTP(w, c.encoding, c.signal)
	}}
}
