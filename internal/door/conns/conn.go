package conns

import (
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/socket"
	"golang.org/x/sys/unix"
)

// Conn is an accepted connection, and what the kernel says of who is at its other end.
type Conn struct {
	net.Conn
	Container string          // "" where the kernel does not tell
	HTTP2     atomic.Bool     // it speaks HTTP/2; who serves it finds out
	pid       int32           // 0 where the kernel does not tell
	raw       syscall.RawConn // nil where there is no socket

	// HasOfBodies is the memory for bodies that its process has, or it alone where the kernel does not
	// tell; nil before it is admitted.
	HasOfBodies *atomic.Int64

	// The limiter's lock guards these.
	hasSpoken bool
	idleSince time.Time // zero while a request is under way
	isOver    bool      // we have closed it

	mu        sync.Mutex // guards isWaiting
	isWaiting bool       // its goroutine waits for a next request
}

// NewConn makes one of a connection that was accepted.
func NewConn(accepted net.Conn) *Conn { return &Conn{Conn: accepted, raw: RawOf(accepted)} }

// Sender tells senders apart: by their processes, or by their connections where no process is known.
func (c *Conn) Sender() any {
	if c.pid != 0 {
		return c.pid
	}
	return c
}

// Who says in the log who sends.
func (c *Conn) Who() []any {
	if c.pid != 0 {
		return []any{"pid", c.pid, "container", c.Container}
	}
	return []any{"from", c.RemoteAddr().String()}
}

// identify asks the kernel for the peer of a Unix socket, and reports whether it may
// connect.
func (c *Conn) identify(allow []uint32) bool {
	unix, ok := c.Conn.(*net.UnixConn)
	if !ok {
		return true
	}
	peer, err := socket.PeerOf(unix)
	c.pid, c.Container = peer.PID, peer.Container
	return len(allow) == 0 || err == nil && slices.Contains(allow, peer.UID)
}

// SetWaiting says whether the connection's goroutine waits for a next request. Only while it does may
// it be woken.
func (c *Conn) SetWaiting(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isWaiting = is
}

// Wake has reading end at once where a next request is waited for.
func (c *Conn) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isWaiting {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // fails where it is closed already
	}
}

// HasUnread asks the kernel whether something has come.
func (c *Conn) HasUnread() bool { return happened(c.raw, unix.POLLIN)&unix.POLLIN != 0 }

// HasLeft asks the kernel whether the sender has ended what it sends, or is gone.
func (c *Conn) HasLeft() bool { return happened(c.raw, unix.POLLRDHUP) != 0 }

// AwaitLeaving waits until the sender has ended what it sends, or is gone, and fails with io.EOF then. What
// it has sent before stays unread. Where there is no socket nobody tells, and it returns at once.
func (c *Conn) AwaitLeaving() error {
	if c.raw == nil {
		return nil
	}
	if err := c.raw.Read(func(fd uintptr) bool { return poll(fd, unix.POLLRDHUP) != 0 }); err != nil {
		return err //nolint:wrapcheck // as a connection has it
	}
	return io.EOF
}

// EndOf is what the end of what a sender sends means, and any other error as it is. A sender that
// leaves before it has all of an answer is answered by its kernel with a reset, which reading does not
// tell of where the end of the sender's came before. The end is then a broken pipe.
func (c *Conn) EndOf(err error) error {
	if err != io.EOF || c.raw == nil { //nolint:errorlint // as a connection has it
		return err
	}
	hasAll := true
	_ = c.raw.Control(func(fd uintptr) {
		unread, asked := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		broken, told := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		hasAll = (asked != nil || unread == 0) && (told != nil || broken == 0)
	})
	if !hasAll {
		return syscall.EPIPE
	}
	return err
}
