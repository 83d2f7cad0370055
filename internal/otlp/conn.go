package otlp

import (
	"context"
	"net"
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/intake"
)

// conn is an SDK's connection. It finds out whether it speaks HTTP/2, whose bytes hold no
// lines to be bounded, and whose requests run side by side, so that none of them shows that
// the answer before was received.
//
// One goroutine reads from it at a time, and one or more write.
type conn struct {
	*intake.Conn
	server  *Server
	header  intake.HeaderLimit // of HTTP/1.1; the goroutine that reads uses it
	receipt intake.Receipt     // of HTTP/1.1
	matched int                // bytes of the preface that came; it is that of another protocol where it is -1
}

// preface is what a connection of HTTP/2 begins with.
const preface = "PRI * HTTP/2.0"

func (s *Server) newConn(accepted *intake.Conn) net.Conn {
	return &conn{Conn: accepted, server: s, receipt: intake.Receipt{Bodies: s.counted}}
}

// Read reads from the SDK, for net/http.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.receipt.Failed(err)
	}
	c.compare(p[:n])
	if !c.HTTP2.Load() && !c.header.Done.Load() && !c.header.Count(p[:n]) {
		return 0, intake.ErrManyLines
	}
	return n, err //nolint:wrapcheck // net/http asks what it is
}

// compare holds the first bytes against the preface.
func (c *conn) compare(came []byte) {
	for i := 0; i < len(came) && c.matched >= 0 && c.matched < len(preface); i++ {
		if c.matched++; came[i] != preface[c.matched-1] {
			c.matched = -1
		}
	}
	if c.matched == len(preface) {
		c.HTTP2.Store(true)
	}
}

// Write writes to the SDK.
func (c *conn) Write(p []byte) (int, error) {
	c.receipt.Writing()
	return c.Conn.Write(p) //nolint:wrapcheck // net/http asks what it is
}

// Close closes the connection and makes room for another. It may be called repeatedly.
func (c *conn) Close() error {
	c.server.limiter.Remove(c.Conn)
	c.receipt.Closed()
	return c.Conn.Close() //nolint:wrapcheck // nobody reads it
}

// follow notes how a connection goes from request to request, for http.Server. One of
// HTTP/2 is idle while it has none.
func (s *Server) follow(followed net.Conn, state http.ConnState) {
	c, ok := followed.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateIdle:
		c.receipt.Idle()
		c.header.Reset()
		s.limiter.SetIdle(c.Conn)
	case http.StateActive:
		s.limiter.SetBusy(c.Conn)
	}
}

// connKey is where the context of a connection's requests holds the connection.
type connKey struct{}

// connContext is for http.Server.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request, nil where a test made it without one.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
