package apm

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestConnectionsToTheAgentAreKeptForAWhile: the one that was used last serves the next
// request, no more are kept than may be, and none for longer than the agent would.
func TestConnectionsToTheAgentAreKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		p := &agentPool{dial: func(context.Context) (net.Conn, error) {
			made++
			ours, _ := net.Pipe()
			return ours, nil
		}}
		connect := func() *agentConn {
			c, err := p.connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.unwatch, c.isSent, c.isRead = func() bool { return true }, true, true
			return c
		}
		var all []*agentConn
		for range idleToAgent + 1 {
			all = append(all, connect())
		}
		for _, c := range all {
			p.giveBack(c)
		}
		if len(p.idle) != idleToAgent {
			t.Errorf("%d are kept", len(p.idle))
		}
		last := connect()
		if last != all[idleToAgent-1] || made != idleToAgent+1 {
			t.Errorf("it was not the one that was used last, or one of %d new ones", made)
		}
		time.Sleep(idleToAgentTime / 2)
		p.giveBack(last)
		time.Sleep(idleToAgentTime / 2)
		if p.expire(time.Now()); len(p.idle) != 1 {
			t.Errorf("%d are kept", len(p.idle))
		}
		time.Sleep(idleToAgentTime / 2)
		if connect(); made != idleToAgent+2 {
			t.Error("one served that was kept for too long")
		}
		p.close()
		if p.giveBack(connect()); len(p.idle) != 0 {
			t.Error("one is kept of a pool that is closed")
		}
	})
}
