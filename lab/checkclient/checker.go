package checkclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Config says what is told, and how. Every field must be set.
type Config struct {
	Out       io.Writer
	JSON      bool // one object a line
	Quiet     bool // only what is malformed, and the end of each connection
	PerSecond int  // messages that are printed
	Now       func() time.Time
	Version   string        // of the daemon, for the welcome
	Features  wire.Features // likewise
	Interval  time.Duration // likewise
}

// maxSessions is how many tracers are served at a time.
const maxSessions = 16

// Checker tells what tracers send, with the limits of a daemon that nobody has configured.
type Checker struct {
	config  Config
	printer printer
	read    ingest.Config
	admit   admit.Config
	unwell  atomic.Int64 // connections
}

// New makes a checker.
func New(config Config) *Checker {
	return &Checker{
		config: config, printer: printer{config: &config}, read: ingest.DefaultConfig(),
		admit: admit.DefaultConfig(),
	}
}

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
