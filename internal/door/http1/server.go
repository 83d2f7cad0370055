package http1

import (
	"context"
	"net"
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/conns"
)

// Wrap makes of an admitted connection one that carries plain requests, for conns.Listener.
func (s *Server) Wrap(accepted *conns.Conn) net.Conn { return s.NewConn(accepted) }

// NewConn does the same.
func (s *Server) NewConn(accepted *conns.Conn) *Conn {
	return &Conn{
		Conn: accepted, server: s, Receipt: bodies.Receipt{Bodies: s.Counted, EndOf: accepted.EndOf},
		isNew: true, isBetween: true, buffer: make([]byte, MaxHead),
	}
}

// Follow notes how a connection goes from request to request, for http.Server. One of HTTP/2 is
// idle while it has none.
func (s *Server) Follow(followed net.Conn, state http.ConnState) {
	c, ok := followed.(*Conn)
	if !ok {
		return
	}
	switch state {
	case http.StateIdle:
		if !c.HTTP2.Load() { // of which another goroutine reads
			c.Receipt.Idle()
			c.isBetween = true
			c.Header.Reset()
		}
		s.Limiter.SetIdle(c.Conn)
	case http.StateActive:
		s.Limiter.SetBusy(c.Conn)
	case http.StateHijacked: // its handler closes it
		c.finish()
	case http.StateClosed: // by its own goroutine, so that nothing is under way
		c.dropMore()
		c.finish()
		c.Close()
	}
}

// connKey is where the context of a connection's requests holds the connection.
type connKey struct{}

// ConnContext is for http.Server.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ConnOf returns the connection of a request, nil where a test made it without one.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
