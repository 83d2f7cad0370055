package conns

import (
	"net"
	"testing"
	"time"
)

// newConn is a connection of a process that is not admitted yet.
func newConn(pid int32) *Conn {
	ours, _ := net.Pipe()
	return &Conn{Conn: ours, pid: pid}
}

// TestAnIdleConnectionGivesWay: a process has half of the connections at most, the one that
// has been idle longest gives way, and where none is idle the newest is rejected.
func TestAnIdleConnectionGivesWay(t *testing.T) {
	l := NewLimiter(4)
	add := func(pid int32, want bool) *Conn {
		t.Helper()
		c := newConn(pid)
		if got := l.add(c); got != want {
			t.Errorf("process %d, with %d connections: admitted %v", pid, len(l.conns), got)
		}
		return c
	}
	isOpen := func(c *Conn) bool { _, ok := l.conns[c]; return ok }
	first, second := add(1, true), add(1, true)
	add(1, false) // it has its half
	l.SetIdle(second)
	third := add(1, true)
	l.SetBusy(second) // which has read a request meanwhile
	if isOpen(second) || !l.IsOver(second) || !isOpen(first) || l.IsOver(first) {
		t.Error("it was not the idle one that gave way")
	}
	stranger := add(0, true)
	other := add(0, true) // nobody knows whether they are of one process
	add(0, false)
	l.SetIdle(third)
	time.Sleep(time.Millisecond)
	l.SetIdle(stranger)
	add(2, true)
	if isOpen(third) || !isOpen(stranger) || !isOpen(other) {
		t.Error("it was not the one that was idle for longest that gave way")
	}
	l.SetBusy(stranger)
	add(2, false)
	l.Remove(other, false)
	l.Remove(other, false) // which some do twice
	add(2, true)
	if n, last := l.Count(); n != 4 || last.IsZero() {
		t.Errorf("%d are open, the last was heard at %v", n, last)
	}
	l.CloseAll()
	if l.IsOver(other) || !l.IsOver(first) {
		t.Error("who has left is over, or who was closed is not")
	}
	l.Remove(other, true)
	l.Remove(first, false)
	if !l.IsOver(other) || !l.IsOver(first) {
		t.Error("who is over does not stay so")
	}
}

// TestThereAreAsManyConnectionsAsThereMayBe: while none of them is idle one more is
// rejected, whoever has it.
func TestThereAreAsManyConnectionsAsThereMayBe(t *testing.T) {
	l := NewLimiter(3)
	for i := range l.max {
		if !l.add(&Conn{}) {
			t.Errorf("connection %d of %d was rejected", i+1, l.max)
		}
	}
	if l.add(&Conn{}) || len(l.conns) != l.max {
		t.Errorf("there are %d connections of %d", len(l.conns), l.max)
	}
}
