package apm

import (
	"net"
	"syscall"
	"time"
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
// for. The limiter's lock guards what another goroutine may ask.
type conn struct {
	net.Conn
	raw       syscall.RawConn // nil where there is no socket
	server    *Server
	limiter   *connLimiter
	pid       int32 // 0 where the kernel does not tell
	container string
	header    headerLimit // the goroutine that reads uses it
	receipt   receipt

	isBetween bool   // net/http waits for a next request
	rest      int    // of what comes so much belongs to the request that net/http has
	buffer    []byte // what is received where net/http waits
	in        []byte // received, and not passed on
	head      head   // of the request that was looked at last

	// The limiter's lock guards these.
	idleSince   time.Time // zero while a request is under way
	isAnswering bool      // a plain request is under way, of which net/http does not know
	isClosing   bool      // it was closed meanwhile
	begun       *job      // that net/http has to go on with
}

// toTheEnd is all that comes.
const toTheEnd = -1

func (s *Server) newConn(accepted net.Conn) *conn {
	c := &conn{
		Conn: accepted, server: s, limiter: &s.limiter, receipt: receipt{bodies: s.counted},
		isBetween: true, buffer: make([]byte, maxPlainHead),
	}
	c.raw = rawOf(accepted)
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
			c.receipt.failed(err)
			return 0, err
		}
		c.isBetween = false
	}
	n, err := c.pass(p)
	if err != nil {
		c.receipt.failed(err)
	}
	if !c.header.done.Load() && !c.header.count(p[:n]) {
		return 0, errManyLines
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
	c.receipt.writing()
	return c.Conn.Write(p)
}

// Close closes the connection and makes room for another. It may be called repeatedly. Where
// net/http closes it as an idle one, and it answers a request, it is closed behind that.
func (c *conn) Close() error {
	l := c.limiter
	l.mu.Lock()
	if c.isAnswering {
		c.isClosing = true
		l.mu.Unlock()
		return nil
	}
	begun := c.begun
	c.begun = nil
	delete(l.conns, c)
	if c.idleSince.IsZero() {
		l.markIdle(c)
	}
	l.mu.Unlock()
	if begun != nil {
		begun.abandon()
	}
	c.receipt.closed()
	return c.Conn.Close()
}

// takeBegun returns the request that net/http has to go on with, nil where there is none.
func (c *conn) takeBegun() *job {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	j := c.begun
	c.begun = nil
	return j
}
