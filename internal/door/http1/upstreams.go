package http1

import (
	"context"
	"net"
	"sync"
	"time"
)

// Upstreams makes connections to whoever is behind, and keeps them for the next request. While
// nobody can be connected to, for instance because it restarts, requests wait for it:
// nothing of them was sent.
//
// mu guards the connections that nobody uses.
type Upstreams struct {
	Dial  func(context.Context) (net.Conn, error)
	Waits Waiting

	mu       sync.Mutex
	idle     []*Upstream // the one that was used last is the last
	isClosed bool
}

const (
	// MaxKept is how many connections are kept for the next request.
	MaxKept = 64
	// KeptFor is shorter than the minute or so after which most servers, the agent among them,
	// close a connection, perhaps under a request.
	KeptFor = 30 * time.Second
)

// Connect returns a connection that was kept, or makes one.
func (p *Upstreams) Connect(ctx context.Context) (*Upstream, error) {
	if c := p.TakeUsable(); c != nil {
		return c, nil
	}
	conn, err := p.Waits.Dial(ctx, p.Dial)
	if err != nil {
		return nil, err //nolint:wrapcheck // who asked says for what
	}
	return NewUpstream(conn), nil
}

// TakeUsable returns a connection that was kept, nil where there is none.
func (p *Upstreams) TakeUsable() *Upstream {
	for c := p.takeIdle(); c != nil; c = p.takeIdle() {
		if time.Since(c.idleSince) < KeptFor && c.isUsable() {
			c.IsSent, c.IsRead = false, false
			return c
		}
		c.Close()
	}
	return nil
}

func (p *Upstreams) takeIdle() *Upstream {
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

// GiveBack takes a connection back that a request has used. It is kept if another request
// may follow.
func (p *Upstreams) GiveBack(c *Upstream) {
	stays := c.Unwatch == nil || c.Unwatch()
	mayFollow := stays && c.IsSent && c.IsRead && c.From.Buffered() == 0
	c.Unwatch, c.wasKept, c.idleSince = nil, true, time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !mayFollow || p.isClosed || len(p.idle) >= MaxKept {
		c.Close()
		return
	}
	p.idle = append(p.idle, c)
}

// Expire closes connections that nobody has used for KeptFor.
func (p *Upstreams) Expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.idle) && now.Sub(p.idle[old].idleSince) >= KeptFor {
		p.idle[old].Close()
		old++
	}
	p.idle = append(p.idle[:0], p.idle[old:]...)
	clear(p.idle[len(p.idle):cap(p.idle)])
}

// Close closes all that nobody uses, and from then on each behind its request.
func (p *Upstreams) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClosed = true
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
}
