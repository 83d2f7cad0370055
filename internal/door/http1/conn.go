package http1

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/conns"
)

// Conn is a sender's connection, limited in number and in the lines of its headers.
//
// net/http reads from it; but where net/http waits for a next request, what comes is looked
// at first: a plain request that is taken is answered right there (answer.go), and net/http
// sees a connection that stays idle. Any other request is passed on to net/http, and nothing
// behind it, so that the one after it is looked at again.
//
// The connection's goroutine uses it, and while a request of net/http is under way the one
// that watches for the sender's leaving, which has ended when the next request is waited
// for. A lock guards what another goroutine may ask.
type Conn struct {
	*conns.Conn
	Receipt bodies.Receipt // of HTTP/1.1
	Header  HeaderLimit    // the same; the goroutine that reads uses it
	server  *Server
	// bytes of HTTP/2's preface that came; it is that of another protocol where it is -1
	matched int

	isNew     bool         // nothing has been waited for yet
	isBetween bool         // net/http waits for a next request
	isEnded   bool         // net/http was told that there is none: it may ask again
	isUsed    bool         // a plain request was answered
	rest      int          // of what comes so much belongs to the request that net/http has
	buffer    []byte       // what is received where net/http waits
	in        []byte       // received, and not passed on
	more      *bodies.Body // the same, of a body behind that; nil where there is none
	head      Head         // of the request that was looked at last

	mu        sync.Mutex // guards what follows
	isDone    bool       // net/http has ended it, or given it away
	isClosing bool       // no other request may follow
	begun     Exchange   // that net/http has to go on with
}

// Server is whose connections carry plain requests. Every field must be set, but for HTTP2.
type Server struct {
	Handler Handler
	Limiter *conns.Limiter
	Bodies  *bodies.Pool
	Counted *bodies.Counted
	HTTP2   bool // net/http speaks it as well, without TLS
	// How long a sender may take to send a header, and a body, to read an answer, and to send another
	// request.
	Header, Read, Write, Between time.Duration
}

// Handler says which plain requests are answered on their connection.
type Handler interface {
	// Take returns what answers a request, nil where net/http does. Its body is not longer than
	// MaxBody.
	Take(c *Conn, r *Request) Exchange
	// IsStopping says whether no more are taken.
	IsStopping() bool
}

// Request is a plain one without its body. Its fields are good until it is answered.
type Request struct {
	Method, Path string
	Fields       Fields
}

// Exchange answers one request.
type Exchange interface {
	// Answer is given the body, or as much as came and the error with which it broke off. It
	// reports false where net/http has to go on with the request, whose handler finds it by
	// TakeBegun.
	Answer(body *bodies.Body, broken error) (isOver bool)
	// Abandon ends a request that net/http was to go on with, and that nobody goes on with.
	Abandon()
}

// toTheEnd is all that comes.
const toTheEnd = -1

// pass reads what belongs to net/http's request, or waits for the sender's leaving behind that: what comes
// instead belongs to the next request. Where the end of a request is only net/http knows, which reads a
// single byte then. (Within a body it does where there is a line of chunks that it takes for too long.)
func (c *Conn) pass(p []byte) (n int, err error) {
	if c.rest == 0 || c.rest == toTheEnd && len(p) == 1 && c.Header.Done.Load() {
		return 0, c.Conn.AwaitLeaving()
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

// receive reads what was received and not passed on, or else from the sender.
func (c *Conn) receive(p []byte) (n int, err error) {
	if len(c.in) > 0 {
		n = copy(p, c.in)
		c.in = c.in[n:]
		return n, nil
	}
	if c.more != nil {
		n = copy(p, c.more.Send)
		if c.more.Send = c.more.Send[n:]; len(c.more.Send) == 0 {
			c.dropMore()
		}
		if n > 0 {
			return n, nil
		}
	}
	return c.Conn.Read(p) //nolint:wrapcheck // net/http asks what it is
}

// dropMore lets go of what was read of a body.
func (c *Conn) dropMore() {
	if c.more != nil {
		c.more.Release()
		c.more = nil
	}
}

// firstWord is how long a daemon that stops waits for the first request of a connection: its sender may
// have connected before the stop, and be about to write.
const firstWord = time.Second

// next waits for the beginning of a next request. A daemon that stops wakes who waits: what has come by
// then is a request still, and else there is none.
func (c *Conn) next() error {
	for {
		c.Conn.SetWaiting(true)
		if c.isLast() && c.isNew {
			_ = c.Conn.SetReadDeadline(time.Now().Add(firstWord)) // none where it can't be set
		} else if c.isLast() && !c.Conn.HasUnread() {
			c.Conn.SetWaiting(false)
			return net.ErrClosed
		}
		n, err := c.Conn.Read(c.buffer)
		c.Conn.SetWaiting(false)
		c.isNew = false
		c.in = c.buffer[:n]
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !c.isLast() {
			return err //nolint:wrapcheck // net/http asks what it is
		}
		_ = c.Conn.SetReadDeadline(time.Now().Add(c.server.Header)) // none where it can't be set
	}
}

// isLast says whether no other request is waited for.
func (c *Conn) isLast() bool { return c.isToClose() || c.server.Handler.IsStopping() }

// isToClose says whether no other request may follow, also where one has come.
func (c *Conn) isToClose() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isClosing
}

// Write writes to the sender.
func (c *Conn) Write(p []byte) (int, error) {
	c.Receipt.Writing()
	return c.Conn.Write(p) //nolint:wrapcheck // the same
}

// Close closes the connection and makes room for another. It may be called repeatedly. A daemon that
// stops has net/http close what seems idle to it, which knows nothing of a plain request, nor of what has
// come and is not read: the connection's goroutine is told instead, and ends it behind that.
func (c *Conn) Close() error {
	if c.server.Handler.IsStopping() && !c.isDoneOrHTTP2() {
		c.Conn.Wake()
		return nil
	}
	begun := c.TakeBegun()
	c.server.Limiter.Remove(c.Conn)
	if begun != nil {
		begun.Abandon()
	}
	c.Receipt.Closed()
	return c.Conn.Close() //nolint:wrapcheck // nobody reads it
}

func (c *Conn) isDoneOrHTTP2() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isDone || c.HTTP2.Load()
}

// finish notes that net/http has ended the connection, or given it to who closes it.
func (c *Conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isDone = true
}

// TakeBegun returns the request that net/http has to go on with, nil where there is none.
func (c *Conn) TakeBegun() Exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	begun := c.begun
	c.begun = nil
	return begun
}

// Begins notes that net/http has read the header of a request, also where that came together
// with the request before.
func (c *Conn) Begins() {
	c.Header.Done.Store(true)
	c.Receipt.NextRequest()
}

// Preface is what a connection of HTTP/2 begins with, whose bytes hold no lines to be bounded,
// and whose requests run side by side, so that none of them shows that the answer before was
// received.
const Preface = "PRI * HTTP/2.0"

// compare holds the first bytes that net/http is given against the preface. It reports false where that
// comes behind a plain request, of which net/http knows nothing: no connection changes to another protocol.
func (c *Conn) compare(came []byte) bool {
	for i := 0; i < len(came) && c.matched >= 0 && c.matched < len(Preface); i++ {
		if c.matched++; came[i] != Preface[c.matched-1] {
			c.matched = -1
		}
	}
	if c.matched == len(Preface) && !c.isUsed {
		c.HTTP2.Store(true)
	}
	return c.matched != len(Preface) || !c.isUsed
}
