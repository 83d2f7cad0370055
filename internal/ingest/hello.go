package ingest

import (
	"io"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// helloTimeout is how long a tracer may take to say who it is.
const helloTimeout = 5 * time.Second

func (c *conn) hello() error {
	hello, err := c.readHello()
	if err != nil {
		return err
	}
	c.publisher = c.server.config.Admit.NewConnection(c.originOf(hello))
	origin := c.publisher.Origin()
	c.tracer.Store(&Tracer{
		Client: span.Text(hello.Client, span.MaxOriginField), Service: origin.Service, Env: origin.Env,
		Lang: origin.Lang, Container: origin.ContainerID,
		UID: c.peer.UID, PID: c.peer.PID, Since: c.since,
	})
	c.server.config.Log.Debug("tracer connected", c.attributes()...)
	if c.welcome() != nil {
		return io.EOF
	}
	return nil
}

func (c *conn) readHello() (hello *wire.Hello, err error) {
	message, err := c.frames.first(helloTimeout)
	if err != nil {
		if faultOf(err) == FaultTooSlow {
			return nil, faultf(FaultNoHello, "read hello: none within %s", helloTimeout)
		}
		return nil, err
	}
	c.server.counters.frames.Add(1)
	kind, body, err := wire.Split(message)
	if err != nil {
		return nil, &fault{FaultNoHello, err}
	}
	if kind != wire.TypeHello {
		return nil, faultf(FaultNoHello, "read hello: the first message is %s", kind)
	}
	decoded, err := wire.DecodeHello(body)
	if err != nil {
		return nil, &fault{FaultBadMessage, err}
	}
	if decoded.Version != wire.Version {
		return nil, faultf(FaultVersion, "read hello: version %d is not spoken here, %d is", decoded.Version, wire.Version)
	}
	return &decoded, nil
}

// originOf is the tracer's origin, in the peer's container where it names none.
func (c *conn) originOf(hello *wire.Hello) span.Origin {
	origin := hello.Origin
	if origin.ContainerID == "" && origin.EntityID == "" {
		origin.ContainerID = c.peer.Container
	}
	return origin
}
