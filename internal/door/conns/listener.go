package conns

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// Listener accepts connections of users that may connect, as far as the limiter admits
// them.
type Listener struct {
	net.Listener
	Limiter   *Limiter
	AllowUIDs []uint32 // nil: whoever can connect
	// Rejected is told of each connection that finds no room, and of its process, 0 where the kernel does
	// not tell.
	Rejected func(process int32)
	// Wrap makes of an admitted connection the one that is served. Its Close has the
	// limiter remove the connection.
	Wrap func(*Conn) net.Conn
}

// Accept returns the next connection that is admitted.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if isStopped(err) {
			return nil, net.ErrClosed
		}
		if err != nil {
			return nil, err //nolint:wrapcheck // net/http asks whether it passes
		}
		c := NewConn(accepted)
		switch {
		case !c.identify(l.AllowUIDs):
			accepted.Close()
		case !l.Limiter.add(c):
			l.Limiter.rejected.Add(1)
			l.Rejected(c.pid)
			reject(accepted)
		default:
			return l.Wrap(c), nil
		}
	}
}

// reject answers 503 before a request came. The answer fits into any socket's buffer, so
// that writing it does not block.
func reject(accepted net.Conn) {
	_ = accepted.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(accepted, "HTTP/1.1 503 Service Unavailable\r\n"+
		"Connection: close\r\nContent-Length: 0\r\n\r\n")
	accepted.Close()
}

// isStopped says whether a listener's error is that it was told to stop. net/http takes a
// deadline for an error that passes.
func isStopped(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
