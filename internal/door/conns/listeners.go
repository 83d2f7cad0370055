package conns

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/socket"
)

// Listeners are where a server accepts connections: a Unix socket, an address, or both. One
// goroutine opens them, and serves and ends them afterwards.
type Listeners struct {
	// Of says how connections are admitted; its own Listener is not used.
	Of Listener

	unix      *socket.Listener // nil where there is none
	tcp       net.Listener     // nil where there is none
	stopTCP   func(context.Context, net.Listener)
	accepting sync.WaitGroup // until nobody waits in a listener any more
}

// OpenSocket opens a Unix socket.
func (l *Listeners) OpenSocket(c socket.Config) (err error) {
	l.unix, err = socket.Listen(c)
	return err //nolint:wrapcheck // who opens it says for what
}

// OpenTCP opens an address, or takes a socket that was given, whose queue is the next
// daemon's.
func (l *Listeners) OpenTCP(addr string, given net.Listener) (err error) {
	if given != nil {
		l.tcp, l.stopTCP = given, LeaveQueue
		return nil
	}
	if l.tcp, err = ListenTCP(addr); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	l.stopTCP = StopTCP
	return nil
}

// Serve accepts connections on each of them in a goroutine of its own, until it ends.
func (l *Listeners) Serve(serve func(net.Listener)) {
	for _, on := range l.all() {
		l.accepting.Go(func() { serve(on) })
	}
}

// all are the listeners, with their connections admitted.
func (l *Listeners) all() (all []net.Listener) {
	add := func(from net.Listener) {
		admitting := l.Of
		admitting.Listener = from
		all = append(all, &admitting)
	}
	if l.unix != nil {
		add(l.unix)
	}
	if l.tcp != nil {
		add(l.tcp)
	}
	return all
}

// HasSocket says whether there is a Unix socket.
func (l *Listeners) HasSocket() bool { return l.unix != nil }

// Watch makes the socket's file again where it was removed, until done.
func (l *Listeners) Watch(done <-chan struct{}, log *slog.Logger) { l.unix.Watch(done, log) }

// Lack is why nobody finds the socket, nil where they do or there is none.
func (l *Listeners) Lack() error {
	if l.unix == nil {
		return nil
	}
	return l.unix.Lack() //nolint:wrapcheck // it says what to do
}

// Addr is the address, "" where there is none.
func (l *Listeners) Addr() string {
	if l.tcp == nil {
		return ""
	}
	return l.tcp.Addr().String()
}

// EndAccepting returns when whoever is to be accepted was, or the context has ended: who
// connected before. A socket that was given leaves who waits to the next daemon.
func (l *Listeners) EndAccepting(ctx context.Context) {
	if l.unix != nil {
		l.unix.Shut()
	}
	if l.tcp != nil {
		l.stopTCP(ctx, l.tcp)
	}
	accepted := make(chan struct{})
	go func() {
		l.accepting.Wait()
		close(accepted)
	}()
	select {
	case <-accepted:
	case <-ctx.Done(): // for want of file descriptors; closing the listeners ends it
	}
}

// Wait returns when nobody accepts any more.
func (l *Listeners) Wait() { l.accepting.Wait() }

// Release gives the sockets back. Those that were served are closed already.
func (l *Listeners) Release() {
	if l.unix != nil {
		_ = l.unix.Close()
	}
	if l.tcp != nil {
		_ = l.tcp.Close()
	}
}

// Await looks every millisecond whether something is so, until it is or the context has
// ended.
func Await(ctx context.Context, is func() bool) {
	looking := time.NewTicker(time.Millisecond)
	defer looking.Stop()
	for !is() {
		select {
		case <-looking.C:
		case <-ctx.Done():
			return
		}
	}
}
