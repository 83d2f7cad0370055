package http1

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

	"github.com/spanstatsd/spanstatsd/internal/door/conns"
)

// Upstream is a connection to whoever is behind, an agent or a collector, that carries held
// requests, one after the other. The goroutine of the request that has it writes and reads;
// another one looks for an answer only while a write takes long.
type Upstream struct {
	net.Conn
	From   *bufio.Reader // of the connection, by way of Read
	Head   bytes.Buffer  // of a request; its memory serves the next one
	Answer Head          // of an answer that was received at once
	Piece  []byte        // room for a piece of an answer's body
	// ends watching for the sender's leaving, or reports that it has left; nil where nobody does
	Unwatch func() bool
	IsSent  bool // all of the request is written
	IsRead  bool // all of its answer is read, and another request may follow

	room      int             // bytes that may still be read of the answer's header and what comes before it
	raw       syscall.RawConn // nil where there is no socket
	isSlow    bool            // who is behind has not taken all of the request at once
	wasKept   bool            // it has carried a request before
	idleSince time.Time
	pieces    net.Buffers // head and body
	left      net.Buffers // what is not written of them
}

// NewUpstream makes one of a connection.
func NewUpstream(c net.Conn) *Upstream {
	u := &Upstream{Conn: c, raw: conns.RawOf(c), Piece: make([]byte, answerPiece)}
	u.From = bufio.NewReader(u)
	return u
}

const (
	// SlowWrite is how long a request may take to be written before anybody looks whether
	// it is answered already, and SlowAnswer an answer before anybody looks whether
	// the sender has left. They are many times what most take.
	SlowWrite  = 20 * time.Millisecond
	SlowAnswer = 20 * time.Millisecond
	// MaxAnswerHeader is many times what anybody writes.
	MaxAnswerHeader = 64 << 10
	// answerPiece holds the body of most answers.
	answerPiece = 4 << 10
)

var errAnswerHeader = fmt.Errorf("read answer: its header is longer than %d bytes", MaxAnswerHeader)

// Start writes a request in one piece, as far as it is taken within SlowWrite. It
// reports false where the connection was kept and has ended, and nothing was written.
func (c *Upstream) Start(head, body []byte) bool {
	c.room = MaxAnswerHeader
	c.pieces = append(c.pieces[:0], head, body)
	c.left = c.pieces
	_ = c.SetWriteDeadline(time.Now().Add(SlowWrite)) // none where it can't be set
	written, err := c.left.WriteTo(c.Conn)
	c.IsSent, c.isSlow = err == nil, errors.Is(err, os.ErrDeadlineExceeded)
	return c.IsSent || c.isSlow || written > 0 || !c.wasKept
}

// Finish writes what is left of a request until it is answered. Some answer
// before they have read all, for instance that the body is too large, and read no more: then
// writing fails, and the answer is there all the same.
func (c *Upstream) Finish() {
	_ = c.SetReadDeadline(time.Time{}) // none where it can't be set
	if !c.isSlow {
		return
	}
	_ = c.SetWriteDeadline(time.Time{})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = c.From.Peek(1) // fails where the connection ends, which writing will meet too
		_ = c.SetWriteDeadline(time.Now())
	}()
	_, err := c.left.WriteTo(c.Conn)
	<-answered
	c.IsSent, c.isSlow = err == nil, false
}

// ReceiveAtOnce returns an answer that is plain, and is here whole within SlowAnswer, and its
// status. It stays in the buffer; of any other it returns nil.
func (c *Upstream) ReceiveAtOnce() (answer []byte, status int) {
	if !c.IsSent {
		return nil, 0
	}
	_ = c.SetReadDeadline(time.Now().Add(SlowAnswer)) // none where it can't be set
	if _, err := c.From.Peek(1); err != nil {
		return nil, 0 // whoever reads on meets it again
	}
	answer, _ = c.From.Peek(c.From.Buffered())
	h := &c.Answer
	if !h.Parse(answer) || h.Length+h.Body != len(answer) {
		return nil, 0
	}
	status, ok := h.Answer()
	if !ok {
		return nil, 0
	}
	return answer, status
}

// Receive reads an answer up to its body. What comes before it, such as early hints, is
// shown.
func (c *Upstream) Receive(r *http.Request, show func(early *http.Response)) (*http.Response, error) {
	defer func() { c.room = math.MaxInt }()
	for {
		answer, err := http.ReadResponse(c.From, r)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read answer: %w", err)
		case answer.StatusCode >= http.StatusOK:
			return answer, nil
		}
		if err := CheckStatus(answer.StatusCode); err != nil {
			return nil, err
		}
		show(answer)
	}
}

// CheckStatus says of a status below 200 why it is none of an answer, nil where one follows it.
func CheckStatus(status int) error {
	switch {
	case status == http.StatusSwitchingProtocols:
		return errors.New("read answer: it changes to another protocol, which nobody asked for")
	case status < http.StatusContinue:
		return fmt.Errorf("read answer: its status %d is none of HTTP", status)
	}
	return nil
}

// Read reads what comes back, of a header no more than there is room for.
func (c *Upstream) Read(p []byte) (int, error) {
	if c.room <= 0 {
		return 0, errAnswerHeader
	}
	n, err := c.Conn.Read(p[:min(len(p), c.room)])
	c.room -= n
	return n, err
}

// isUsable reports whether a connection that nobody used is as it was left: the other end has
// neither ended it nor said anything on it. Where the kernel can't be asked it is.
func (c *Upstream) isUsable() bool {
	if c.raw == nil {
		return true
	}
	var readErr error
	err := c.raw.Control(func(fd uintptr) { _, readErr = syscall.Read(int(fd), c.Piece[:1]) })
	return err == nil && errors.Is(readErr, syscall.EAGAIN)
}
