package conns

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/eventually"
	"github.com/spanstatsd/spanstatsd/internal/socket"
)

// TestListenersAcceptOnEachAndEnd: who connected before the end is accepted, and nobody
// afterwards.
func TestListenersAcceptOnEachAndEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	limiter := NewLimiter(100)
	l := Listeners{Of: Listener{Limiter: limiter, Wrap: func(c *Conn) net.Conn { return c }}}
	if l.HasSocket() || l.Addr() != "" || l.Lack() != nil {
		t.Fatal("nothing was opened")
	}
	if err := errors.Join(l.OpenSocket(socket.Config{Path: path, Mode: 0o600}),
		l.OpenTCP("127.0.0.1:0", nil)); err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	var accepted atomic.Int32
	dial := func(network, address string) {
		t.Helper()
		c, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	dial("unix", path) // waits in the queue
	dial("tcp", l.Addr())
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l.EndAccepting(ctx)
	l.Wait()
	if n := accepted.Load(); n != 3 {
		t.Errorf("%d connections were accepted, want 3", n)
	}
	if open, _ := limiter.Count(); open != 3 {
		t.Errorf("%d were admitted, want 3", open)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		t.Error("somebody connected behind the end")
	}
}

// TestAGivenSocketIsLeftAsItIs: who waits in its queue is the next daemon's.
func TestAGivenSocketIsLeftAsItIs(t *testing.T) {
	given, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listeners{Of: Listener{Limiter: NewLimiter(1), Wrap: func(c *Conn) net.Conn { return c }}}
	if err := l.OpenTCP("unused", given); err != nil || l.Addr() != given.Addr().String() {
		t.Fatal(l.Addr(), err)
	}
	l.EndAccepting(t.Context())
	waiting, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	_ = given.(*net.TCPListener).SetDeadline(time.Time{}) // as the next daemon has it
	next, err := given.Accept()
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	l.Release()
}

// TestAwait looks until something is so, and no longer than its context.
func TestAwait(t *testing.T) {
	looks := 0
	Await(t.Context(), func() bool { looks++; return looks == 3 })
	if looks != 3 {
		t.Errorf("%d looks", looks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); Await(ctx, func() bool { return false }) }()
	cancel()
	eventually.True(t, "an ended context ends it", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}
