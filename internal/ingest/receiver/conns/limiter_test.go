package conns

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// newConn returns a connection of a process before its admission.
func newConn(pid int32) *Conn {
	ours, _ := net.Pipe()
	return &Conn{Conn: ours, pid: pid}
}

func busy(c *Conn) { ConnState(c, http.StateActive) }
func idle(c *Conn) { ConnState(c, http.StateIdle) }

// TestLimiter_IdleConnectionIsEvicted checks that a process has at most half of the connections, that its longest
// idle connection is evicted for a new one, and that the new one is rejected if none is idle.
func TestLimiter_IdleConnectionIsEvicted(t *testing.T) {
	l := NewLimiter(4)
	add := func(pid int32, want bool) *Conn {
		t.Helper()
		c := newConn(pid)
		got := l.add(c)
		if got != want {
			t.Errorf("process %d, with %d connections: admitted %v", pid, len(l.conns), got)
		}
		if got {
			busy(c)
		}
		return c
	}
	isOpen := func(c *Conn) bool { _, ok := l.conns[c]; return ok }
	first, second := add(1, true), add(1, true)
	add(1, false) // the process has half of the connections
	idle(second)
	third := add(1, true)
	busy(second) // net/http has read a request in the meantime
	if isOpen(second) || !second.IsClosed() || !isOpen(first) || first.IsClosed() {
		t.Error("the evicted connection is not the idle one")
	}
	stranger := add(0, true)
	other := add(0, true) // connection of an unknown process
	add(0, false)
	idle(third)
	time.Sleep(time.Millisecond)
	idle(stranger)
	add(2, true)
	if isOpen(third) || !isOpen(stranger) || !isOpen(other) {
		t.Error("the evicted connection is not the one that was idle longest")
	}
	busy(stranger)
	add(2, false)
	ConnState(other, http.StateClosed)
	other.Close() // net/http can close a connection twice
	add(2, true)
	if n, last := l.Count(); n != 4 || last.IsZero() {
		t.Errorf("%d are open, the last was active at %v", n, last)
	}
	if l.CloseAll(); !first.IsClosed() {
		t.Error("a connection is open after all are closed")
	}
}

// age makes a connection older than firstRequestGrace and drainGrace.
func age(c *Conn) { c.stateStart = c.stateStart.Add(-2 * drainGrace) }

// TestLimiter_NewConnectionIsNotEvicted checks a connection whose first request may be in the socket's buffer.
func TestLimiter_NewConnectionIsNotEvicted(t *testing.T) {
	l, isNew := NewLimiter(1), newConn(0)
	l.add(isNew)
	if l.add(newConn(0)) || isNew.IsClosed() {
		t.Error("a connection is evicted before its first request can be read")
	}
	age(isNew)
	if !l.add(newConn(0)) || !isNew.IsClosed() {
		t.Error("a silent connection is never evicted")
	}
}

// TestLimiter_SilentConnectionIsEvictedFirst checks that the oldest connection without a request is evicted before
// idle ones.
func TestLimiter_SilentConnectionIsEvictedFirst(t *testing.T) {
	l := NewLimiter(3)
	used, older, newer := newConn(0), newConn(0), newConn(0)
	for _, c := range []*Conn{used, older, newer} {
		if !l.add(c) {
			t.Error("there is room, and a connection is rejected")
		}
		time.Sleep(time.Millisecond)
		age(c)
	}
	busy(used)
	idle(used)
	for _, want := range []*Conn{older, newer, used} {
		next := newConn(0)
		if !l.add(next) || !want.IsClosed() {
			t.Error("the wrong connection is evicted")
		}
		busy(next)
	}
	if l.add(newConn(0)) {
		t.Error("a busy connection is evicted")
	}
}

// TestLimiter_NeverRejects checks that a new connection is evicted before a busy one, and the oldest busy one if
// all are busy.
func TestLimiter_NeverRejects(t *testing.T) {
	l := NewLimiter(3)
	l.NeverRejects = true
	older, newer, isNew := newConn(0), newConn(0), newConn(0)
	for _, c := range []*Conn{older, newer, isNew} {
		l.add(c)
	}
	busy(older)
	time.Sleep(time.Millisecond)
	busy(newer)
	for _, want := range []*Conn{isNew, older, newer} {
		next := newConn(0)
		if !l.add(next) || !want.IsClosed() {
			t.Error("the wrong connection is evicted")
		}
		time.Sleep(time.Millisecond)
		busy(next)
	}
	if n, _ := l.Count(); n != 3 || l.Evicted() != 3 || l.Rejected() != 0 {
		t.Errorf("%d are open, %d evicted, %d rejected", n, l.Evicted(), l.Rejected())
	}
}

// TestConn_CloseWhileBusy checks that net/http can close a dead HTTP/2 connection whose requests are in flight.
func TestConn_CloseWhileBusy(t *testing.T) {
	l, c := NewLimiter(3), newConn(0)
	l.add(c)
	busy(c)
	c.Close()
	if n, _ := l.Count(); !c.IsClosed() || n != 0 {
		t.Errorf("it stays open; %d connections", n)
	}
}

// TestConn_CloseWhileDraining covers http.Server.Shutdown, which can close a connection that it considers idle
// after a request has arrived.
func TestConn_CloseWhileDraining(t *testing.T) {
	l, c := NewLimiter(3), newConn(0)
	l.add(c)
	l.Drain()
	busy(c)
	if c.Close(); c.IsClosed() {
		t.Error("a request has lost its connection")
	}
	ConnState(c, http.StateClosed) // net/http's goroutine for the connection calls it
	if n, _ := l.Count(); !c.IsClosed() || n != 0 {
		t.Errorf("it stays open; %d connections", n)
	}
	hijacked := newConn(0)
	l.add(hijacked)
	busy(hijacked)
	ConnState(hijacked, http.StateHijacked)
	hijacked.Close() // the handler closes a hijacked connection
	if n, _ := l.Count(); n != 0 {
		t.Errorf("a hijacked connection stays open: %d", n)
	}
}

// TestLimiter_CloseIdle checks that busy connections stay open.
func TestLimiter_CloseIdle(t *testing.T) {
	l, isBusy, isIdle, isNew := NewLimiter(9), newConn(0), newConn(0), newConn(0)
	for _, c := range []*Conn{isBusy, isIdle, isNew} {
		l.add(c)
	}
	busy(isBusy)
	busy(isIdle)
	idle(isIdle)
	if !l.AwaitsFirstRequest() {
		t.Error("a connection is not new before its first request")
	}
	age(isNew)
	if l.AwaitsFirstRequest() {
		t.Error("a silent connection is new forever")
	}
	l.CloseIdle()
	if isBusy.IsClosed() || !isIdle.IsClosed() || !isNew.IsClosed() {
		t.Errorf("busy %v, idle %v, silent %v", isBusy.IsClosed(), isIdle.IsClosed(), isNew.IsClosed())
	}
}
