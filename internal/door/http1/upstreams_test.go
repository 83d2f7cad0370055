package http1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestUpstreamsAreKeptForAWhile: the one that was used last serves the next
// request, no more are kept than may be, and none for longer than the agent would.
func TestUpstreamsAreKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		p := NewUpstreams(func(context.Context) (net.Conn, error) {
			made++
			ours, _ := net.Pipe()
			return ours, nil
		}, &Waiting{}, 0)
		connect := func() *Upstream {
			c, err := p.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.Unwatch, c.IsSent, c.IsRead = func() bool { return true }, true, true
			return c
		}
		var all []*Upstream
		for range MaxKept + 1 {
			all = append(all, connect())
		}
		for _, c := range all {
			p.GiveBack(c)
		}
		if len(p.idle) != MaxKept {
			t.Errorf("%d are kept", len(p.idle))
		}
		last := connect()
		if last != all[MaxKept-1] || made != MaxKept+1 {
			t.Errorf("it was not the one that was used last, or one of %d new ones", made)
		}
		time.Sleep(KeptFor / 2)
		p.GiveBack(last)
		time.Sleep(KeptFor / 2)
		if p.Expire(time.Now()); len(p.idle) != 1 {
			t.Errorf("%d are kept", len(p.idle))
		}
		time.Sleep(KeptFor / 2)
		if connect(); made != MaxKept+2 {
			t.Error("one served that was kept for too long")
		}
		p.Close()
		if p.GiveBack(connect()); len(p.idle) != 0 {
			t.Error("one is kept of a pool that is closed")
		}
	})
}

// TestConnectionsInUseAreBounded: one more is not at hand, and is waited for until another is given
// back.
func TestConnectionsInUseAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewUpstreams(func(context.Context) (net.Conn, error) {
			ours, _ := net.Pipe()
			return ours, nil
		}, &Waiting{}, 2)
		first, second := p.AtHand(), p.AtHand()
		if first == nil || second == nil || p.AtHand() != nil {
			t.Fatal("there are not two")
		}
		got := make(chan error)
		go func() {
			_, err := p.Connect(t.Context())
			got <- err
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Error("there are three")
		default:
		}
		p.GiveBack(first)
		if err := <-got; err != nil {
			t.Error(err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Connect(over); err == nil {
			t.Error("whose time is over got one")
		}
	})
}

// TestWhoIsAwayLeavesRoom for others: a connection that can't be made is none in use.
func TestWhoIsAwayLeavesRoom(t *testing.T) {
	isAway := true
	p := NewUpstreams(func(context.Context) (net.Conn, error) {
		if isAway {
			return nil, errors.New("away")
		}
		ours, _ := net.Pipe()
		return ours, nil
	}, &Waiting{}, 1)
	for range 2 {
		if c := p.AtHand(); c != nil {
			t.Error("a connection to who is away is at hand")
		}
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err := p.Connect(within); err == nil || within.Err() != nil {
			t.Errorf("it connects, or waits for room: %v", err)
		}
		cancel()
	}
	if isAway = false; p.AtHand() == nil {
		t.Error("there is no room for a connection")
	}
}

// TestAnOddStatusIsAnErrorAtOnce: it is no status of HTTP, or changes to another protocol.
func TestAnOddStatusIsAnErrorAtOnce(t *testing.T) {
	for status, is := range map[string]bool{
		"099": true, "+20": true, "101": true, "100": false,
		"103": false,
	} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = io.WriteString(theirs,
				"HTTP/1.1 "+status+" X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}()
		c := NewUpstream(ours)
		c.room = MaxAnswerHeader
		shown := 0
		answer, err := c.Receive(nil, func(*http.Response) { shown++ })
		if is != (err != nil) || !is && (answer.StatusCode != http.StatusOK || shown != 1) {
			t.Errorf("%s: %v, %v, %d shown before", status, answer, err, shown)
		}
		ours.Close()
		theirs.Close()
	}
}
