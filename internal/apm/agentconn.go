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
	from      *bufio.Reader // of the connection, by way of Read
	room      int           // bytes that may still be read of the answer's header and what comes before it
	unwatch   func() bool   // ends watching for the tracer's leaving, or reports that it has left
	isSent    bool          // all of the request is written
	isRead    bool          // all of its answer is read, and another request may follow
	wasKept   bool          // it has carried a request before
	idleSince time.Time
	head      bytes.Buffer // of a request; its memory serves the next one
	piece     []byte       // the same of an answer
}

func newAgentConn(c net.Conn) *agentConn {
	a := &agentConn{Conn: c, piece: make([]byte, answerPiece)}
	a.from = bufio.NewReader(a)
	return a
}

const (
	// slowWrite is how long a request may take to be written before anybody looks whether
	// the agent has answered already. It is many times what most take.
	slowWrite = 20 * time.Millisecond
	// maxAnswerHeader is many times what any agent writes.
	maxAnswerHeader = 64 << 10
	// answerPiece holds the body of most answers.
	answerPiece = 4 << 10
)

var errAnswerHeader = fmt.Errorf("read answer: its header is longer than %d bytes", maxAnswerHeader)

// send writes a request in one piece. An agent may answer before it has read all, for
// instance that the body is too large, and read no more: then writing fails, and the answer
// is there all the same. It reports false where the connection was kept and has ended, and
// nothing was written.
func (c *agentConn) send(head, body []byte) bool {
	c.room = maxAnswerHeader
	pieces := net.Buffers{head, body}
	_ = c.SetWriteDeadline(time.Now().Add(slowWrite)) // none where it can't be set
	written, err := pieces.WriteTo(c.Conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = c.sendOn(pieces)
	}
	c.isSent = err == nil
	return c.isSent || written > 0 || !c.wasKept
}

// sendOn writes what is left of a request until the agent answers.
func (c *agentConn) sendOn(pieces net.Buffers) error {
	_ = c.SetWriteDeadline(time.Time{})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = c.from.Peek(1) // fails where the connection ends, which writing will meet too
		_ = c.SetWriteDeadline(time.Now())
	}()
	_, err := pieces.WriteTo(c.Conn)
	<-answered
	return err
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
	inKernel, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := inKernel.SyscallConn()
	if err != nil {
		return false
	}
	var readErr error
	err = raw.Read(func(fd uintptr) bool {
		_, readErr = syscall.Read(int(fd), c.piece[:1])
		return true
	})
	return err == nil && errors.Is(readErr, syscall.EAGAIN)
}
