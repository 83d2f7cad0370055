package otlp

import (
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
)

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
func (c check) Count(readErr error) door.Response {
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
	for f := range otlpanswer.Fields(message) {
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
