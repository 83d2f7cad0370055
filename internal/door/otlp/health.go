package otlp

import (
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
)

// healthPath is where proxies and orchestrators ask whether a server of gRPC serves. It is the service's
// Check. Its Watch is answered UNIMPLEMENTED, by which gRPC's own clients take a server for one that serves
// and ask no more: a stream that each SDK holds open would tell them what the end of a connection tells too.
const healthPath = "/grpc.health.v1.Health/Check"

// The answers to a check, as messages with a status.
const (
	serving    = "\x08\x01"
	notServing = "\x08\x02"
)

// check is a question for the health of a service.
type check struct{ *call }

// Read answers it.
func (c check) Read(broken error) *door.Reply {
	no := c.unframe(broken)
	if no == nil && c.packing != bodies.Plain {
		w := c.server.turns.take(c.sender())
		defer c.server.turns.give(w)
		c.message, no = c.server.readable(c.call, w)
	}
	if no != nil {
		return c.refuse(no)
	}
	c.Result = int(ResultOther)
	switch {
	case !c.server.hasService(serviceIn(c.message)):
		return c.say(refuse(ResultOther, otlpanswer.NotFound, "there is no such service here"))
	case c.server.IsStopping():
		return c.say(&reply{message: []byte(notServing)})
	}
	return c.say(&reply{message: []byte(serving)})
}

// serviceIn is the name that a check asks for, "" for the server as a whole.
func serviceIn(message []byte) (name string) {
	for f := range otlpanswer.Fields(message) {
		if f.Number == 1 {
			name = string(f.Bytes)
		}
	}
	return name
}

// hasService says whether a service is here.
func (s *Server) hasService(name string) bool {
	found, _, isKnown := signalOf("/" + name + exportMethod)
	return name == "" || isKnown && s.takes(found)
}

// takes says whether requests of a signal are taken: metrics and logs only where they go on.
func (s *Server) takes(of signal) bool {
	return of == signalTraces || of == signalHealth || s.config.Forward.IsSet()
}
