package apm

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/intake"
)

// agentPool makes connections to the agent and keeps them for the next request. While the
// agent can't be connected to, for instance because it restarts, requests wait for it:
// nothing of them was sent, and nothing of them was counted.
//
// mu guards the connections that nobody uses.
type agentPool struct {
	dial  func(context.Context) (net.Conn, error)
	waits intake.Waiting

	mu       sync.Mutex
	idle     []*agentConn // the one that was used last is the last
	isClosed bool
}

const (
	// idleToAgent is how many connections to the agent are kept for the next request, and
	// as many again for what streams.
	idleToAgent = 64
	// idleToAgentTime is shorter than the minute after which the agent closes a connection,
	// perhaps under a request.
	idleToAgentTime = 30 * time.Second
)

// AgentConnections is the most that are open to the agent: one a request, of which a
// tracer's connection has one at a time, and those kept.
func AgentConnections(tracers int) int { return tracers + 2*idleToAgent }

// connect returns a connection that was kept, or makes one.
func (p *agentPool) connect(ctx context.Context) (*agentConn, error) {
	if c := p.takeUsable(); c != nil {
		return c, nil
	}
	conn, err := p.waits.Dial(ctx, p.dial)
	if err != nil {
		return nil, err
	}
	return newAgentConn(conn), nil
}

// takeUsable returns a connection that was kept, nil where there is none.
func (p *agentPool) takeUsable() *agentConn {
	for c := p.takeIdle(); c != nil; c = p.takeIdle() {
		if time.Since(c.idleSince) < idleToAgentTime && c.isUsable() {
			c.isSent, c.isRead = false, false
			return c
		}
		c.Close()
	}
	return nil
}

func (p *agentPool) takeIdle() *agentConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	c := p.idle[last]
	p.idle[last], p.idle = nil, p.idle[:last]
	return c
}

// giveBack takes a connection back that a request has used. It is kept if another request
// may follow.
func (p *agentPool) giveBack(c *agentConn) {
	stays := c.unwatch == nil || c.unwatch()
	mayFollow := stays && c.isSent && c.isRead && c.from.Buffered() == 0
	c.unwatch, c.wasKept, c.idleSince = nil, true, time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !mayFollow || p.isClosed || len(p.idle) >= idleToAgent {
		c.Close()
		return
	}
	p.idle = append(p.idle, c)
}

// expire closes connections that nobody has used for idleToAgentTime.
func (p *agentPool) expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.idle) && now.Sub(p.idle[old].idleSince) >= idleToAgentTime {
		p.idle[old].Close()
		old++
	}
	p.idle = append(p.idle[:0], p.idle[old:]...)
	clear(p.idle[len(p.idle):cap(p.idle)])
}

// close closes all that nobody uses, and from then on each behind its request.
func (p *agentPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClosed = true
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
}
