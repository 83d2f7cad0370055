package conns

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
)

// Listeners are where a server accepts connections: a Unix socket, a TCP address, or both. One
// goroutine opens, serves and ends them.
type Listeners struct {
	Limiter      *Limiter
	AllowUIDs    []uint32      // that may connect to the Unix socket; nil: all
	WriteTimeout time.Duration // for a piece of a response; 0: no limit
	LimitsLines  bool          // of request headers; must be false for TLS
	// Rejected is called for each rejected connection with the id of its process, 0 if unknown.
	Rejected func(process int32)

	unix      *socket.Listener // nil if there is none
	tcp       net.Listener     // nil if there is none
	accepting sync.WaitGroup
}

// OpenSocket opens a Unix socket.
func (l *Listeners) OpenSocket(c socket.Config) (err error) {
	l.unix, err = socket.Listen(c)
	return err //nolint:wrapcheck // the caller says for what
}

// OpenTCP opens an address, or takes over a listener that the service manager has given.
func (l *Listeners) OpenTCP(addr string, given net.Listener) (err error) {
	if l.tcp = given; given != nil {
		return nil
	}
	if l.tcp, err = net.Listen("tcp", addr); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

// Serve calls serve with each listener in a goroutine of its own.
func (l *Listeners) Serve(serve func(net.Listener)) {
	if l.unix != nil {
		l.accepting.Go(func() { serve(l.Limit(l.unix)) })
	}
	if l.tcp != nil {
		l.accepting.Go(func() { serve(l.Limit(l.tcp)) })
	}
}

// Limit returns a listener that admits the connections of another one as the Limiter allows.
func (l *Listeners) Limit(from net.Listener) net.Listener { return &listener{from, l} }

type listener struct {
	net.Listener
	of *Listeners
}

// Accept returns the next connection that is admitted.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // net/http asks whether it is temporary
		}
		if c := l.of.Limiter.admit(accepted, l.of); c != nil {
			return c, nil
		}
	}
}

// reject sends a response before a request came. It fits into any socket's buffer.
func reject(accepted net.Conn) {
	_ = accepted.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(accepted, "HTTP/1.1 503 Service Unavailable\r\n"+
		"Connection: close\r\nContent-Length: 0\r\n\r\n")
	accepted.Close()
}

// HasSocket reports whether there is a Unix socket.
func (l *Listeners) HasSocket() bool { return l.unix != nil }

// Watch restores the socket's file if it was removed, until done.
func (l *Listeners) Watch(done <-chan struct{}, log *slog.Logger) { l.unix.Watch(done, log) }

// SocketErr returns why clients can't find the socket, nil if they can or there is none.
func (l *Listeners) SocketErr() error {
	if l.unix == nil {
		return nil
	}
	return l.unix.Lack() //nolint:wrapcheck // it says what to do
}

// Addr returns the TCP address, "" if there is none.
func (l *Listeners) Addr() string {
	if l.tcp == nil {
		return ""
	}
	return l.tcp.Addr().String()
}

// Stop ends accepting. Clients that wait in the queue of the Unix socket are still accepted, until the
// context ends. The queue of a TCP listener is dropped, and its clients retry; that of a given one is
// the next daemon's.
func (l *Listeners) Stop(ctx context.Context) {
	if l.unix != nil {
		l.unix.Shut()
	}
	if l.tcp != nil {
		_ = l.tcp.Close()
	}
	accepted := make(chan struct{})
	go func() {
		l.accepting.Wait()
		close(accepted)
	}()
	select {
	case <-accepted:
	case <-ctx.Done(): // out of file descriptors; closing the listeners ends it
	}
}

// Wait returns when no goroutine accepts any more.
func (l *Listeners) Wait() { l.accepting.Wait() }

// Close releases the sockets.
func (l *Listeners) Close() {
	if l.unix != nil {
		_ = l.unix.Close()
	}
	if l.tcp != nil {
		_ = l.tcp.Close()
	}
}
