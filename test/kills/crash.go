package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// publishRaw runs raw clients one after another until ctx is done. Each one implements the protocol
// itself and finally crashes: its unsent messages are lost, and the daemon counts its written messages.
func (e *episode) publishRaw(ctx context.Context, a *account, number int) error {
	random := rand.New(rand.NewPCG(e.seed, 200+uint64(number)))
	for i := 0; ctx.Err() == nil; i++ {
		c := &rawClient{name: fmt.Sprintf("crashes-%d-%d", number, i), socket: e.daemon.socket()}
		lifetime, cancel := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(4*time.Second))))
		for lifetime.Err() == nil {
			if !c.isConnected() {
				_ = c.connect() // fails when no daemon is running
			}
			c.publish(1 + random.Uint64N(50))
			if random.IntN(10) == 0 {
				c.requestFlush()
			}
			pause(lifetime, time.Duration(random.IntN(100))*time.Millisecond)
		}
		cancel()
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

// account adds the final states of the client's messages, and the invalid outcomes that daemons
// reported.
func (c *rawClient) account(a *account) {
	for _, m := range c.messages {
		switch m.state {
		case unsent: // never written to a daemon
			continue
		case written:
			a.unsettled += m.spans
		case ambiguous:
			a.ambiguous += m.spans
		case unknown:
			a.died += m.spans
		}
		a.published[m.slot] += m.spans
	}
	a.invalidOutcomes = append(a.invalidOutcomes, c.invalidOutcomes...)
}
