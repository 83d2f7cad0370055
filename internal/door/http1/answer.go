package http1

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
)

// MaxBody is the longest body of a plain request.
const MaxBody = 1 << 20

// Read reads from the sender, for net/http.
func (c *Conn) Read(p []byte) (int, error) {
	if c.isBetween {
		if err := c.between(); err != nil {
			c.Receipt.Failed(err)
			if errors.Is(err, net.ErrClosed) { // it was ended here
				err = io.EOF // of which net/http says nothing to the sender
			}
			return 0, err
		}
		c.isBetween = false
	}
	n, err := c.pass(p)
	if err != nil {
		c.Receipt.Failed(err)
	}
	if c.server.HTTP2 && !c.compare(p[:n]) {
		return 0, net.ErrClosed
	}
	if !c.HTTP2.Load() && !c.Header.Done.Load() && !c.Header.Count(p[:n]) {
		return 0, ErrManyLines
	}
	return n, err
}

// between waits for what net/http has to read, and answers plain requests until that comes. What comes
// is left in c.in, with c.rest for net/http. Which time may pass until a request begins net/http has
// said, and behind one that is answered here its IdleTimeout; from there on a header has its own.
func (c *Conn) between() error {
	if c.rest == toTheEnd { // where a next one begins only net/http knows
		if len(c.in) > 0 {
			return nil
		}
		defer c.server.Limiter.SetBusy(c.Conn) // with the beginning of a request
		return c.next()
	}
	for {
		if c.isEnded {
			return net.ErrClosed
		}
		if len(c.in) == 0 {
			if err := c.next(); err != nil {
				return err
			}
		}
		isOver, err := c.answer()
		if err != nil {
			return err
		}
		if !isOver {
			c.server.Limiter.SetBusy(c.Conn)                            // also with half a head
			_ = c.Conn.SetReadDeadline(time.Now().Add(c.server.Header)) // none where it can't be set
			return nil
		}
		c.isUsed = true
		_ = c.Conn.SetReadDeadline(time.Now().Add(c.server.Between))
		c.isEnded = c.isToClose()
		c.in = bytes.TrimLeft(c.in, "\r\n") // with which some end a body, as net/http tolerates it
	}
}

// answer answers the request that c.in begins with. It reports false where that is for
// net/http to do, and an error where the connection is over.
func (c *Conn) answer() (isOver bool, err error) {
	h, s := &c.head, c.server
	c.rest = toTheEnd
	if !h.Parse(c.in) {
		return false, nil
	}
	method, path, ok := h.Request()
	if !ok {
		return false, nil
	}
	c.rest = h.Length + max(0, h.Body)
	if h.Body < 0 || h.Body > MaxBody || s.Handler.IsStopping() {
		return false, nil
	}
	exchange := s.Handler.Take(c, &Request{Method: method, Path: path, Fields: h.Fields})
	if exchange == nil {
		return false, nil
	}
	c.Receipt.NextRequest()
	s.Limiter.SetBusy(c.Conn)
	defer func() { c.end(isOver) }()
	if c.IsOver() {
		return false, net.ErrClosed
	}
	received := c.in
	c.in = c.in[h.Length:]
	_ = c.Conn.SetReadDeadline(time.Now().Add(s.Read)) // none where it can't be set
	held, err := s.Bodies.Read(&plainBody{c, h.Body}, int64(h.Body), c.HasOfBodies)
	if errors.Is(err, bodies.ErrNoRoom) { // net/http reads all of it again
		c.in, c.more = received, held
		held.Send = held.Bytes[min(len(held.Bytes), len(received)-h.Length):]
		return false, nil
	}
	if isOver = exchange.Answer(held, err); !isOver {
		c.handOver(exchange)
	}
	return isOver, nil
}

// begun is the request that net/http is given in the place of one whose body is read.
const begun = "PUT / HTTP/1.1\r\nHost: x\r\n\r\n"

// handOver has net/http go on with a request, whose handler finds it by TakeBegun.
func (c *Conn) handOver(b Exchange) {
	c.in = append([]byte(begun), c.in...)
	c.rest = len(begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = b
}

// IsOver says whether the connection gave way to another, or was cut off by a daemon that stops, while
// the request that is here was on its way. Its sender won't hear what became of it, so nothing may.
func (c *Conn) IsOver() bool { return c.server.Limiter.IsOver(c.Conn) }

// end notes that a plain request is no more under way here: it is over, or net/http has it now.
func (c *Conn) end(isOver bool) {
	if isOver {
		c.Receipt.Idle()
		c.server.Limiter.SetIdle(c.Conn)
	}
}

// EndBehind has the connection closed behind the request that is being answered.
func (c *Conn) EndBehind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isClosing = true
}

// writeWhole writes an answer that is whole.
func (c *Conn) writeWhole(answer []byte) error {
	if c.Conn.HasLeft() {
		c.Receipt.Failed(io.EOF)
	}
	_ = c.Conn.SetWriteDeadline(time.Now().Add(c.server.Write)) // none where it can't be set
	_, err := c.Write(answer)
	return err
}

// plainBody reads a body of which so many bytes are left.
type plainBody struct {
	from *Conn
	left int
}

func (b *plainBody) Read(p []byte) (n int, err error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(len(p), b.left)]
	if n, err = b.from.receive(p); err != nil {
		b.from.Receipt.Failed(err)
	}
	if b.left -= n; b.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
