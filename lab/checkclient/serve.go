package checkclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// maxSessions is how many tracers are served at a time.
const maxSessions = 16

// Serve takes tracers until so many have come and left, or until the context ends; 0
// stands for any number. The error says how many were not well.
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
			"waits for who asks the next: %d batches came, and %d connections", dieAt, len(c.death.batches),
			served)
	case unwell > 0:
		return fmt.Errorf("check client: %d of %d connections sent what is malformed or dropped; their "+
			"last lines say what", unwell, served)
	}
	return c.printer.failed
}

// serve is one session. When the context ends, it reads what was written before, as a
// daemon does that stops.
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
