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
	dial  func(context.Context) (net.Conn, error)
	waits *Waiting
	inUse chan struct{} // has room for as many connections as there may be; nil: any number

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
	// quickDial is how long a connection may take to be at hand.
	quickDial = 100 * time.Millisecond
)

// NewUpstreams has so many connections in use at most, 0 for any number.
func NewUpstreams(dial func(context.Context) (net.Conn, error), waits *Waiting, most int) *Upstreams {
	p := &Upstreams{dial: dial, waits: waits}
	if most > 0 {
		p.inUse = make(chan struct{}, most)
	}
	return p
}

// AtHand returns a connection that was kept, or is made at once, nil where there is none.
func (p *Upstreams) AtHand() *Upstream {
	if p.inUse != nil {
		select {
		case p.inUse <- struct{}{}:
		default:
			return nil
		}
	}
	if c := p.takeUsable(); c != nil {
		return c
	}
	ctx, cancel := context.WithTimeout(context.Background(), quickDial)
	defer cancel()
	c, err := p.dial(ctx)
	if err != nil {
		p.free()
		return nil
	}
	return NewUpstream(c)
}

// Connect returns a connection that was kept, or makes one. It waits for one to be free, and for
// whoever is behind to be there.
func (p *Upstreams) Connect(ctx context.Context) (*Upstream, error) {
	if p.inUse != nil {
		select {
		case p.inUse <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err() //nolint:wrapcheck // who asked says for what
		}
	}
	if c := p.takeUsable(); c != nil {
		return c, nil
	}
	c, err := p.waits.Dial(ctx, p.dial)
	if err != nil {
		p.free()
		return nil, err //nolint:wrapcheck // the same
	}
	return NewUpstream(c), nil
}

// free makes room for another connection in use.
func (p *Upstreams) free() {
	if p.inUse != nil {
		<-p.inUse
	}
}

// takeUsable returns a connection that was kept, nil where there is none.
func (p *Upstreams) takeUsable() *Upstream {
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
	defer p.free()
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
