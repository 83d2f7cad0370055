package conns

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestListeners_AcceptUntilStop checks that connections before Stop are accepted, and later ones are not.
func TestListeners_AcceptUntilStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	limiter := NewLimiter(100)
	l := Listeners{Limiter: limiter}
	if l.HasSocket() || l.Addr() != "" || l.SocketErr() != nil {
		t.Fatal("nothing was opened")
	}
	if err := errors.Join(l.OpenSocket(socket.Config{Path: path, Mode: 0o600}),
		l.OpenTCP("127.0.0.1:0", nil)); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var accepted atomic.Int32
	dial := func(network, address string) {
		t.Helper()
		c, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	dial("unix", path) // stays in the backlog
	l.Serve(func(on net.Listener) {
		for {
			c, err := on.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			t.Cleanup(func() { c.Close() })
		}
	})
	dial("unix", path)
	dial("tcp", l.Addr())
	eventually.True(t, "the TCP connection is accepted", func() bool { return accepted.Load() == 3 })
	dial("unix", path)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l.Stop(ctx)
	l.Wait()
	if n := accepted.Load(); n != 4 {
		t.Errorf("%d connections were accepted, want 4", n)
	}
	if open, _ := limiter.Count(); open != 4 {
		t.Errorf("%d were admitted, want 4", open)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		t.Error("a connection was accepted after the close")
	}
}

// TestListeners_GivenSocketStaysOpen checks that a socket of the service manager stays open, and that the next
// daemon gets the connections in its backlog.
func TestListeners_GivenSocketStaysOpen(t *testing.T) {
	managers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer managers.Close()
	file, err := managers.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inherited, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	l := Listeners{Limiter: NewLimiter(1)}
	if err := l.OpenTCP("unused", inherited); err != nil || l.Addr() != managers.Addr().String() {
		t.Fatal(l.Addr(), err)
	}
	l.Serve(func(on net.Listener) {
		for {
			if _, err := on.Accept(); err != nil {
				return
			}
		}
	})
	l.Stop(t.Context())
	waiting, err := net.Dial("tcp", managers.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	next, err := managers.Accept()
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	l.Close()
}
