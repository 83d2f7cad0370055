package conns

import (
	"net"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/eventually"
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
		l.SetBusy(c)
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
	l.Remove(other)
	l.Remove(other) // which some do twice
	add(2, true)
	if n, last := l.Count(); n != 4 || last.IsZero() {
		t.Errorf("%d are open, the last was heard at %v", n, last)
	}
	l.CloseAll()
	if l.IsOver(other) || !l.IsOver(first) {
		t.Error("who has left is over, or who was closed is not")
	}
	l.Remove(first)
	if !l.IsOver(first) {
		t.Error("who is over does not stay so")
	}
}

// TestThereAreAsManyConnectionsAsThereMayBe: while none of them is idle one more is
// rejected, whoever has it.
func TestThereAreAsManyConnectionsAsThereMayBe(t *testing.T) {
	l := NewLimiter(3)
	for i := range l.max {
		c := &Conn{}
		if !l.add(c) {
			t.Errorf("connection %d of %d was rejected", i+1, l.max)
		}
		l.SetBusy(c)
	}
	if l.add(&Conn{}) || len(l.conns) != l.max {
		t.Errorf("there are %d connections of %d", len(l.conns), l.max)
	}
}

// TestWhoNeverSpokeGivesWayFirst, the oldest of them, and none that has just said something.
func TestWhoNeverSpokeGivesWayFirst(t *testing.T) {
	l := NewLimiter(3)
	idle, silent := newConn(0), newConn(0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	theirs, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	speaks := NewConn(ours)
	for _, c := range []*Conn{idle, speaks, silent} {
		if !l.add(c) {
			t.Error("there is room, and it is rejected")
		}
		time.Sleep(time.Millisecond)
	}
	l.SetBusy(idle)
	l.SetIdle(idle)
	if _, err := theirs.Write([]byte("P")); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "what it says is here", speaks.HasUnread)
	for _, want := range []*Conn{silent, idle} {
		next := newConn(0)
		if !l.add(next) || !l.IsOver(want) || l.IsOver(speaks) {
			t.Error("it was not the one that has least to say that gave way")
		}
		l.SetBusy(next)
	}
	if l.add(newConn(0)) || l.IsOver(speaks) {
		t.Error("who is about to speak gave way")
	}
}
