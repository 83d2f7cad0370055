package apm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// agentConn is a connection to the agent that carries held requests, one after the other.
// The goroutine of the request that has it writes and reads; another one looks for an
// answer only while a write takes long.
type agentConn struct {
	net.Conn
	from      *bufio.Reader   // of the connection, by way of Read
	room      int             // bytes that may still be read of the answer's header and what comes before it
	raw       syscall.RawConn // nil where there is no socket
	unwatch   func() bool     // ends watching for the tracer's leaving, or reports that it has left; nil where nobody does
	isSent    bool            // all of the request is written
	isSlow    bool            // the agent has not taken all of it at once
	isRead    bool            // all of its answer is read, and another request may follow
	wasKept   bool            // it has carried a request before
	idleSince time.Time
	head      bytes.Buffer // of a request; its memory serves the next one
	pieces    net.Buffers  // head and body
	left      net.Buffers  // what is not written of them
	answer    head         // of an answer
	piece     []byte       // the same of its body
}

func newAgentConn(c net.Conn) *agentConn {
	a := &agentConn{Conn: c, raw: rawOf(c), piece: make([]byte, answerPiece)}
	a.from = bufio.NewReader(a)
	return a
}

const (
	// slowWrite is how long a request may take to be written before anybody looks whether
	// the agent has answered already, and slowAnswer an answer before anybody looks whether
	// the tracer has left. They are many times what most take.
	slowWrite  = 20 * time.Millisecond
	slowAnswer = 20 * time.Millisecond
	// maxAnswerHeader is many times what any agent writes.
	maxAnswerHeader = 64 << 10
	// answerPiece holds the body of most answers.
	answerPiece = 4 << 10
)

var errAnswerHeader = fmt.Errorf("read answer: its header is longer than %d bytes", maxAnswerHeader)

// start writes a request in one piece, as far as the agent takes it within slowWrite. It
// reports false where the connection was kept and has ended, and nothing was written.
func (c *agentConn) start(head, body []byte) bool {
	c.room = maxAnswerHeader
	c.pieces = append(c.pieces[:0], head, body)
	c.left = c.pieces
	_ = c.SetWriteDeadline(time.Now().Add(slowWrite)) // none where it can't be set
	written, err := c.left.WriteTo(c.Conn)
	c.isSent, c.isSlow = err == nil, errors.Is(err, os.ErrDeadlineExceeded)
	return c.isSent || c.isSlow || written > 0 || !c.wasKept
}

// finish writes what is left of a request until the agent answers. An agent may answer
// before it has read all, for instance that the body is too large, and read no more: then
// writing fails, and the answer is there all the same.
func (c *agentConn) finish() {
	_ = c.SetReadDeadline(time.Time{}) // none where it can't be set
	if !c.isSlow {
		return
	}
	_ = c.SetWriteDeadline(time.Time{})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = c.from.Peek(1) // fails where the connection ends, which writing will meet too
		_ = c.SetWriteDeadline(time.Now())
	}()
	_, err := c.left.WriteTo(c.Conn)
	<-answered
	c.isSent, c.isSlow = err == nil, false
}

// receiveAtOnce returns an answer that is plain, and is here whole within slowAnswer, and its
// status. It stays in the buffer; of any other it returns nil.
func (c *agentConn) receiveAtOnce() (answer []byte, status int) {
	_ = c.SetReadDeadline(time.Now().Add(slowAnswer)) // none where it can't be set
	if _, err := c.from.Peek(1); err != nil {
		return nil, 0 // which whoever reads on will meet again
	}
	answer, _ = c.from.Peek(c.from.Buffered())
	h := &c.answer
	if !h.parse(answer) || h.length+h.body != len(answer) {
		return nil, 0
	}
	status, ok := h.answer()
	if !ok {
		return nil, 0
	}
	return answer, status
}

// receive reads an answer up to its body. What comes before it, such as early hints, is
// shown.
func (c *agentConn) receive(r *http.Request, show func(early *http.Response)) (*http.Response, error) {
	defer func() { c.room = math.MaxInt }()
	for {
		answer, err := http.ReadResponse(c.from, r)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read answer: %w", err)
		case answer.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("read answer: it changes to another protocol, which nobody asked for")
		case answer.StatusCode >= http.StatusOK:
			return answer, nil
		}
		show(answer)
	}
}

// Read reads from the agent, of a header no more than there is room for.
func (c *agentConn) Read(p []byte) (int, error) {
	if c.room <= 0 {
		return 0, errAnswerHeader
	}
	n, err := c.Conn.Read(p[:min(len(p), c.room)])
	c.room -= n
	return n, err
}

// isUsable reports whether a connection that nobody used is as it was left: the agent has
// neither ended it nor said anything on it. Where the kernel can't be asked it is.
func (c *agentConn) isUsable() bool {
	if c.raw == nil {
		return true
	}
	var readErr error
	err := c.raw.Control(func(fd uintptr) { _, readErr = syscall.Read(int(fd), c.piece[:1]) })
	return err == nil && errors.Is(readErr, syscall.EAGAIN)
}
