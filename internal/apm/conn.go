package apm

import (
	"net"
	"net/http"
	"sync"
	"syscall"

	"github.com/spanstatsd/spanstatsd/internal/intake"
)

// conn is a tracer's connection, limited in number and in the lines of its headers.
//
// net/http reads from it; but where net/http waits for a next request, what comes is looked
// at first: a plain request with traces is answered right there (plain.go), and net/http
// sees a connection that stays idle. Any other request is passed on to net/http, and nothing
// behind it, so that the one after it is looked at again.
//
// The connection's goroutine uses it, and while a request of net/http is under way the one
// that watches for the tracer's leaving, which has ended when the next request is waited
// for. A lock guards what another goroutine may ask.
type conn struct {
	*intake.Conn
	raw     syscall.RawConn // nil where there is no socket
	server  *Server
	header  intake.HeaderLimit // the goroutine that reads uses it
	receipt intake.Receipt

	isBetween bool   // net/http waits for a next request
	rest      int    // of what comes so much belongs to the request that net/http has
	buffer    []byte // what is received where net/http waits
	in        []byte // received, and not passed on
	head      head   // of the request that was looked at last

	mu          sync.Mutex // guards what follows
	isAnswering bool       // a plain request is under way, of which net/http does not know
	isClosing   bool       // it was closed meanwhile
	begun       *job       // that net/http has to go on with
}

// toTheEnd is all that comes.
const toTheEnd = -1

func (s *Server) newConn(accepted *intake.Conn) *conn {
	c := &conn{
		Conn: accepted, server: s, receipt: intake.Receipt{Bodies: s.counted},
		isBetween: true, buffer: make([]byte, maxPlainHead),
	}
	c.raw = rawOf(accepted.Conn)
	return c
}

// rawOf is the socket of a connection, nil where it has none.
func rawOf(c net.Conn) syscall.RawConn {
	if inKernel, ok := c.(syscall.Conn); ok {
		if raw, err := inKernel.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// Read reads from the tracer, for net/http.
func (c *conn) Read(p []byte) (int, error) {
	if c.isBetween {
		if err := c.answerPlain(); err != nil {
			c.receipt.Failed(err)
			return 0, err
		}
		c.isBetween = false
	}
	n, err := c.pass(p)
	if err != nil {
		c.receipt.Failed(err)
	}
	if !c.header.Done.Load() && !c.header.Count(p[:n]) {
		return 0, intake.ErrManyLines
	}
	return n, err
}

// pass reads what belongs to net/http's request.
func (c *conn) pass(p []byte) (n int, err error) {
	if c.rest == 0 {
		return 0, c.watch()
	}
	if c.rest > 0 {
		p = p[:min(len(p), c.rest)]
	}
	n, err = c.receive(p)
	if c.rest > 0 {
		c.rest -= n
	}
	return n, err
}

// receive reads what was received and not passed on, or else from the tracer.
func (c *conn) receive(p []byte) (n int, err error) {
	if len(c.in) > 0 {
		n = copy(p, c.in)
		c.in = c.in[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// watch waits for the tracer's leaving, behind the request that net/http has. What comes
// instead belongs to the next request: net/http is given nothing, and watches no more.
func (c *conn) watch() error {
	if len(c.in) > 0 {
		return nil
	}
	n, err := c.Conn.Read(c.buffer)
	c.in = c.buffer[:n]
	return err
}

// Write writes to the tracer.
func (c *conn) Write(p []byte) (int, error) {
	c.receipt.Writing()
	return c.Conn.Write(p)
}

// Close closes the connection and makes room for another. It may be called repeatedly. Where
// net/http closes it as an idle one, and it answers a request, it is closed behind that.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.isAnswering {
		c.isClosing = true
		c.mu.Unlock()
		return nil
	}
	begun := c.begun
	c.begun = nil
	c.mu.Unlock()
	c.server.limiter.Remove(c.Conn)
	if begun != nil {
		begun.abandon()
	}
	c.receipt.Closed()
	return c.Conn.Close()
}

// takeBegun returns the request that net/http has to go on with, nil where there is none.
func (c *conn) takeBegun() *job {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.begun
	c.begun = nil
	return j
}

// follow notes how a connection goes from request to request, for http.Server.
func (s *Server) follow(followed net.Conn, state http.ConnState) {
	c, ok := followed.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateIdle:
		c.receipt.Idle()
		c.isBetween = c.rest == 0
		c.header.Reset()
		s.limiter.SetIdle(c.Conn)
	case http.StateActive:
		s.limiter.SetBusy(c.Conn)
	}
}
