package apm

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/intake"
	"golang.org/x/sys/unix"
)

// Requests with traces come by the hundred a second on connections that stay, and nearly
// all are alike: a head that states the length of its body, an agent that takes it at once
// and answers in one piece. Those are answered here, on the connection's goroutine, without
// a goroutine, a copy or an object more than they need. What is not like that is net/http's:
// from its head on, or, where the agent takes its time, as a request that was begun.

// maxPlainBody is up to which length a body's buffer is taken at once.
const maxPlainBody = intake.TrustedLength

// answerPlain answers plain requests with traces until something else comes, which is left
// in c.in with c.rest for net/http, or an error. Which time may pass until a request comes
// net/http has said, and behind one that is answered here its IdleTimeout.
func (c *conn) answerPlain() error {
	for {
		if len(c.in) == 0 {
			n, err := c.Conn.Read(c.buffer)
			if err != nil {
				return err
			}
			c.in = c.buffer[:n]
		}
		if isOver := c.answer(); !isOver {
			return nil
		}
		if c.isLast() {
			return io.EOF
		}
		_ = c.Conn.SetReadDeadline(time.Now().Add(betweenRequests))
		c.in = bytes.TrimLeft(c.in, "\r\n") // with which some end a body, as net/http tolerates it
	}
}

// answer answers the request that c.in begins with. It reports false where that is for
// net/http to do.
func (c *conn) answer() (isOver bool) {
	h, s := &c.head, c.server
	c.rest = toTheEnd
	if !h.parse(c.in) {
		return false
	}
	method, path, ok := h.request()
	if !ok {
		return false
	}
	c.rest = h.length + max(0, h.body)
	format, ok := formats[path]
	if !ok || method == http.MethodGet || h.body < 0 || h.body > maxPlainBody || s.isStopping() {
		return false
	}
	c.begin()
	var j *job
	defer func() {
		if !isOver && j != nil {
			c.handOver(j)
		}
		c.end(isOver)
	}()
	received := c.in
	c.in = c.in[h.length:]
	_ = c.Conn.SetReadDeadline(time.Now().Add(readTimeout)) // none where it can't be set
	held, err := s.bodies.Read(&plainBody{c, h.body}, int64(h.body))
	if errors.Is(err, intake.ErrNoRoom) {
		c.in = received // nothing was read of it
		return false
	}
	j = s.newJob(format, c, method+" "+path, h.fields)
	j.body, j.broken = held, err
	return err == nil && j.forwardAtOnce()
}

// begun is the request that net/http is given in the place of one whose body is read.
const begun = "PUT / HTTP/1.1\r\nHost: x\r\n\r\n"

// handOver has net/http go on with a request.
func (c *conn) handOver(j *job) {
	c.in = append([]byte(begun), c.in...)
	c.rest = len(begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = j
}

// begin notes that a plain request is under way.
func (c *conn) begin() {
	c.receipt.NextRequest()
	c.server.limiter.SetBusy(c.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isAnswering = true
}

// end notes that it is no more: it is over, or net/http has it now.
func (c *conn) end(isOver bool) {
	if isOver {
		c.receipt.Idle()
		c.server.limiter.SetIdle(c.Conn)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isAnswering = false
}

// isLast says whether no other request may follow.
func (c *conn) isLast() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isClosing || c.server.isStopping()
}

// hasLeft asks the kernel whether the tracer has ended what it sends.
func (c *conn) hasLeft() (left bool) {
	if c.raw != nil {
		_ = c.raw.Control(func(fd uintptr) {
			events := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
			n, err := unix.Poll(events[:], 0)
			left = n > 0 && err == nil
		})
	}
	return left
}

// writeWhole writes an answer that is whole.
func (c *conn) writeWhole(answer []byte) error {
	if c.hasLeft() {
		c.receipt.Failed(io.EOF)
	}
	_ = c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // none where it can't be set
	_, err := c.Write(answer)
	return err
}

// plainBody reads a body of which so many bytes are left.
type plainBody struct {
	from *conn
	left int
}

func (b *plainBody) Read(p []byte) (n int, err error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(len(p), b.left)]
	if n, err = b.from.receive(p); err != nil {
		b.from.receipt.Failed(err)
	}
	if b.left -= n; b.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
