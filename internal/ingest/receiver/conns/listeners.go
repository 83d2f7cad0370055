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

// Listeners are the Unix socket and the TCP address on which a server accepts connections. Both are optional. The methods
// are not safe for concurrent use.
type Listeners struct {
	Limiter           *Limiter
	AllowUIDs         []uint32      // users that may connect to the Unix socket; nil allows all
	WriteTimeout      time.Duration // timeout of one write; 0 means unlimited
	LimitsHeaderLines bool          // whether to limit the lines of request headers; must be false with TLS
	// OnReject is called for each rejected connection, with the peer's process id, or 0 if it is unknown.
	OnReject func(process int32)

	unix      *socket.Listener // nil without a Unix socket
	tcp       net.Listener     // nil without a TCP address
	accepting sync.WaitGroup
}

// OpenSocket opens a Unix socket.
func (l *Listeners) OpenSocket(c socket.Config) (err error) {
	l.unix, err = socket.Listen(c)
	return err //nolint:wrapcheck // the caller adds the context
}

// OpenTCP listens on a TCP address. If inherited is not nil, it uses this listener, which the service manager has
// opened for the address, instead of opening one.
func (l *Listeners) OpenTCP(addr string, inherited net.Listener) error {
	if inherited != nil {
		l.tcp = inherited
		return nil
	}
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	l.tcp = tcp
	return nil
}

// Serve starts a goroutine for the Unix socket and one for the TCP listener, if they are open. Each goroutine calls
// serve with a listener that enforces the connection limits.
func (l *Listeners) Serve(serve func(net.Listener)) {
	if l.unix != nil {
		l.accepting.Go(func() { serve(l.Limit(l.unix)) })
	}
	if l.tcp != nil {
		l.accepting.Go(func() { serve(l.Limit(l.tcp)) })
	}
}

// Limit returns a listener that accepts connections from unlimited, and rejects those over the limit.
func (l *Listeners) Limit(unlimited net.Listener) net.Listener { return &listener{unlimited, l} }

type listener struct {
	net.Listener
	config *Listeners
}

// Accept returns the next connection that is within the limits. It closes all other connections.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // net/http checks whether it is temporary
		}
		if c := l.config.Limiter.admit(accepted, l.config); c != nil {
			return c, nil
		}
	}
}

// reject writes an error response without waiting for a request, and closes the connection. The response fits into the
// socket's buffer, so that the write does not block.
func reject(accepted net.Conn) {
	_ = accepted.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(accepted, "HTTP/1.1 503 Service Unavailable\r\n"+
		"Connection: close\r\nContent-Length: 0\r\n\r\n")
	accepted.Close()
}

// HasSocket reports whether there is a Unix socket.
func (l *Listeners) HasSocket() bool { return l.unix != nil }

// Watch restores the file of the Unix socket when it is removed. It returns when done is closed.
func (l *Listeners) Watch(done <-chan struct{}, log *slog.Logger) { l.unix.Watch(done, log) }

// SocketErr returns an error if the file of the Unix socket is missing, so that clients can't connect.
func (l *Listeners) SocketErr() error {
	if l.unix == nil {
		return nil
	}
	return l.unix.Unreachable() //nolint:wrapcheck // it says what to do
}

// Addr returns the TCP listen address, or "" if there is none.
func (l *Listeners) Addr() string {
	if l.tcp == nil {
		return ""
	}
	return l.tcp.Addr().String()
}

// Stop stops accepting connections. It waits until pending connections of the Unix socket are accepted, or ctx is
// done. Pending TCP connections are dropped, and their clients retry. Pending connections of a listener from the
// service manager are left to the next daemon.
func (l *Listeners) Stop(ctx context.Context) {
	if l.unix != nil {
		l.unix.RejectNew()
	}
	if l.tcp != nil {
		_ = l.tcp.Close()
	}
	backlogAccepted := make(chan struct{})
	go func() {
		l.accepting.Wait()
		close(backlogAccepted)
	}()
	select {
	case <-backlogAccepted:
	case <-ctx.Done(): // for instance because Accept fails for lack of file descriptors
	}
}

// Wait returns when all goroutines of Serve have ended.
func (l *Listeners) Wait() { l.accepting.Wait() }

// Close closes the sockets.
func (l *Listeners) Close() {
	if l.unix != nil {
		_ = l.unix.Close()
	}
	if l.tcp != nil {
		_ = l.tcp.Close()
	}
}
