package ingest

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// helloTimeout is how long a tracer may take to say who it is.
const helloTimeout = 5 * time.Second

func (c *conn) hello() error {
	hello, message, err := readHello(c.frames)
	if message != nil {
		c.counters.frames.Add(1)
	}
	if err != nil {
		return err
	}
	c.publisher = c.config.Admit.NewConnection(c.originOf(hello), c.peer.PID)
	c.wantsSettled = hello.Settled
	earlier := c.config.Running.Earlier(hello.Earlier)
	origin := c.publisher.Origin()
	c.tracer.Store(&Tracer{
		Client: span.Text(hello.Client, span.MaxOriginField), Service: origin.Service, Env: origin.Env,
		Lang: origin.Lang, Container: origin.ContainerID,
		UID: c.peer.UID, PID: c.peer.PID, Since: c.since,
	})
	c.config.Log.Debug("tracer connected", c.attributes()...)
	c.welcome(earlier)
	return nil
}

// readHello reads the first message, and returns it whatever it is, if there was one.
func readHello(f *frames) (hello *wire.Hello, message []byte, err error) {
	message, err = f.first(helloTimeout)
	if err != nil {
		if FaultOf(err) == FaultTooSlow {
			return nil, nil, faultf(FaultNoHello, "read hello: none within %s", helloTimeout)
		}
		return nil, nil, err
	}
	kind, body, err := wire.Split(message)
	if err != nil {
		return nil, message, &fault{FaultNoHello, err}
	}
	if kind != wire.TypeHello {
		f.putBack(message)
		return nil, message, faultf(FaultNoHello, "read hello: the first message is %s", kind)
	}
	decoded, err := wire.DecodeHello(body)
	if err != nil {
		return nil, message, &fault{FaultBadMessage, err}
	}
	if decoded.Version != wire.Version {
		return nil, message, faultf(FaultVersion, "read hello: version %d is not spoken here, %d is",
			decoded.Version, wire.Version)
	}
	return &decoded, message, nil
}

// originOf is the tracer's origin, in the peer's container where it names none.
func (c *conn) originOf(hello *wire.Hello) span.Origin {
	origin := hello.Origin
	if origin.ContainerID == "" && origin.EntityID == "" {
		origin.ContainerID = c.peer.Container
	}
	return origin
}
