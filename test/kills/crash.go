package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// publishRaw has one client after the other that speaks the protocol itself, and crashes in the end: what it
// keeps is gone with it, and what it had handed over its daemon counts.
func (e *episode) publishRaw(ctx context.Context, a *account, number int) error {
	random := rand.New(rand.NewPCG(e.seed, 200+uint64(number)))
	for i := 0; ctx.Err() == nil; i++ {
		c := &rawClient{name: fmt.Sprintf("crashes-%d-%d", number, i), socket: e.daemon.socket()}
		living, over := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(4*time.Second))))
		for living.Err() == nil {
			if !c.isConnected() {
				_ = c.connect() // nobody may be there
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

// isConnected says whether there is a connection that a daemon has not ended.
func (c *rawClient) isConnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn != nil
}

// crash ends the connection as the kernel does for a process that is gone.
func (c *rawClient) crash() {
	c.mu.Lock()
	conn, ended := c.conn, c.ended
	c.mu.Unlock()
	if conn != nil {
		conn.Close()
		<-ended
	}
}

// account adds what the client knew when it ended, and what a daemon said that it must not say.
func (c *rawClient) account(a *account) {
	for _, m := range c.messages {
		switch m.fate {
		case waits: // nobody was ever handed it
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
