package checkclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// maxSessions limits the number of concurrent connections.
const maxSessions = 16

// Serve serves the given number of connections, or any number if it is 0. It returns when all of
// them have ended or ctx is done. The error contains how many of them failed.
func (c *Checker) Serve(ctx context.Context, listener net.Listener, connections int) (err error) {
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	var sessions sync.WaitGroup
	serving := make(chan struct{}, maxSessions)
	served := 0
	for connections == 0 || served < connections {
		serving <- struct{}{}
		var conn net.Conn
		if conn, err = listener.Accept(); err != nil {
			break
		}
		served++
		id := served
		sessions.Go(func() {
			c.serve(ctx, conn, id)
			<-serving
		})
	}
	sessions.Wait()
	switch unwell := c.unwell.Load(); {
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("accept connection: %w", err)
	case served == 0:
		return errors.New("check client: no tracer connected")
	case c.death != nil && !c.death.isAsked:
		return fmt.Errorf("check client: the daemon dies with batch %d of the first connection, and then "+
			"waits for the client that asks the next: %d batches came, and %d connections", dieAt, len(c.death.batches),
			served)
	case unwell > 0:
		return fmt.Errorf("check client: %d of %d connections sent what is malformed or dropped; their "+
			"last lines say what", unwell, served)
	}
	return c.printer.failed
}

// serve runs one session. When ctx is done, it still reads data that was already written, as a
// daemon does during shutdown.
func (c *Checker) serve(ctx context.Context, conn net.Conn, id int) {
	defer conn.Close()
	if unix, is := conn.(*net.UnixConn); is {
		defer context.AfterFunc(ctx, func() { _ = unix.CloseRead() })()
	}
	s := newSession(c, conn, id)
	if ended := s.run(); ended != nil {
		s.fail(ended)
	} else if ctx.Err() != nil {
		s.answer(wire.AppendBye(nil, &wire.Bye{Reason: "shutdown", Detail: "check-client stops"}), "bye",
			"reason", "shutdown")
	}
	if !s.end() {
		c.unwell.Add(1)
	}
}
