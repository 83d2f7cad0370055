package http1

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestUpstreamsAreKeptForAWhile: the one that was used last serves the next
// request, no more are kept than may be, and none for longer than the agent would.
func TestUpstreamsAreKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		p := &Upstreams{Dial: func(context.Context) (net.Conn, error) {
			made++
			ours, _ := net.Pipe()
			return ours, nil
		}}
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
