package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// publishRaw runs raw clients one after another until ctx is done. Each one implements the protocol
// itself and finally crashes: the messages that it still keeps are lost, and the messages that it had
// written are counted by the daemon.
func (e *episode) publishRaw(ctx context.Context, a *account, number int) error {
	random := rand.New(rand.NewPCG(e.seed, 200+uint64(number)))
	for i := 0; ctx.Err() == nil; i++ {
		c := &rawClient{name: fmt.Sprintf("crashes-%d-%d", number, i), socket: e.daemon.socket()}
		living, over := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(4*time.Second))))
		for living.Err() == nil {
			if !c.isConnected() {
				_ = c.connect() // fails when no daemon is running
			}
			c.publish(1 + random.Uint64N(50))
			if random.IntN(10) == 0 {
				c.report()
			}
			pause(living, time.Duration(random.IntN(100))*time.Millisecond)
		}
		over()
		c.crash()
		c.account(a)
	}
	return nil
}

// isConnected reports whether the client has a connection that no daemon has closed.
func (c *rawClient) isConnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn != nil
}

// crash closes the connection like the kernel does for a process that has ended.
func (c *rawClient) crash() {
	c.mu.Lock()
	conn, ended := c.conn, c.ended
	c.mu.Unlock()
	if conn != nil {
		conn.Close()
		<-ended
	}
}

// account adds the client's final knowledge of its messages, and the invalid outcomes that daemons
// reported.
func (c *rawClient) account(a *account) {
	for _, m := range c.messages {
		switch m.fate {
		case waits: // never written to a daemon
			continue
		case given:
			a.unsettled += m.spans
		case ambiguous:
			a.ambiguous += m.spans
		case unknown:
			a.died += m.spans
		}
		a.published[m.slot] += m.spans
	}
	a.wrong = append(a.wrong, c.wrong...)
}
