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

// Listeners are the Unix socket and the TCP address on which a server accepts connections; one of them may
// be missing. Its methods are for one goroutine.
type Listeners struct {
	Limiter      *Limiter
	AllowUIDs    []uint32      // users that may connect to the Unix socket; nil: all
	WriteTimeout time.Duration // for a piece of a response; 0: no limit
	LimitsLines  bool          // of request headers; must be false for TLS
	// Rejected is called for each rejected connection, with the id of its process, 0 if unknown.
	Rejected func(process int32)

	unix      *socket.Listener // nil without a Unix socket
	tcp       net.Listener     // nil without a TCP address
	accepting sync.WaitGroup
}

// OpenSocket opens a Unix socket.
func (l *Listeners) OpenSocket(c socket.Config) (err error) {
	l.unix, err = socket.Listen(c)
	return err //nolint:wrapcheck // the caller says for what
}

// OpenTCP opens an address, unless the service manager has passed its listener.
func (l *Listeners) OpenTCP(addr string, given net.Listener) (err error) {
	if l.tcp = given; given != nil {
		return nil
	}
	if l.tcp, err = net.Listen("tcp", addr); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

// Serve starts a goroutine per listener that calls serve with it.
func (l *Listeners) Serve(serve func(net.Listener)) {
	if l.unix != nil {
		l.accepting.Go(func() { serve(l.Limit(l.unix)) })
	}
	if l.tcp != nil {
		l.accepting.Go(func() { serve(l.Limit(l.tcp)) })
	}
}

// Limit returns a listener that accepts the connections of another one within the limits.
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

// reject responds before a request has come, and closes the connection. The response fits into the socket's
// buffer, so that writing it does not block.
func reject(accepted net.Conn) {
	_ = accepted.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(accepted, "HTTP/1.1 503 Service Unavailable\r\n"+
		"Connection: close\r\nContent-Length: 0\r\n\r\n")
	accepted.Close()
}

// HasSocket reports whether there is a Unix socket.
func (l *Listeners) HasSocket() bool { return l.unix != nil }

// Watch restores the file of the Unix socket if it is removed, until done is closed.
func (l *Listeners) Watch(done <-chan struct{}, log *slog.Logger) { l.unix.Watch(done, log) }

// SocketErr returns why clients can't connect to the Unix socket, if there is one.
func (l *Listeners) SocketErr() error {
	if l.unix == nil {
		return nil
	}
	return l.unix.Unreachable() //nolint:wrapcheck // it says what to do
}

// Addr returns the TCP address, "" without one.
func (l *Listeners) Addr() string {
	if l.tcp == nil {
		return ""
	}
	return l.tcp.Addr().String()
}

// Stop stops accepting. Connections in the backlog of the Unix socket are still accepted, until the context
// ends. The backlog of the TCP listener is dropped, and its clients retry; if the service manager has passed
// the listener, its backlog is left to the next daemon.
func (l *Listeners) Stop(ctx context.Context) {
	if l.unix != nil {
		l.unix.Shut()
	}
	if l.tcp != nil {
		_ = l.tcp.Close()
	}
	hasStopped := make(chan struct{})
	go func() {
		l.accepting.Wait()
		close(hasStopped)
	}()
	select {
	case <-hasStopped:
	case <-ctx.Done(): // there are no free file descriptors; Close stops it
	}
}

// Wait returns when no goroutine is accepting.
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
