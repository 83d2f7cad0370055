package ingest

import "github.com/spanstatsd/spanstatsd/internal/wire"

// A fast tracer's batches lie in the buffer by the dozen. They are admitted together: what
// a batch costs besides its spans, a claim and a publish on each ring foremost, which
// waits for cache lines of another processor, is spent once for all. Each is still
// admitted whole or dropped whole: where they find no room together, or one of them is
// malformed, each is admitted alone, and for a while none are gathered.

const (
	mostGathered = 16
	apartFor     = 256 // frames
)

// gather begins with a batch, and adds those that follow it in the buffer. Together they
// are no more than one batch may be.
func (c *conn) gather(first wire.SpansWalker) {
	c.gathered[0], c.together = first, 1
	if c.apart > 0 {
		c.apart--
		return
	}
	for spans := first.Len(); c.together < mostGathered; c.together++ {
		message, ok := c.frames.peek()
		if !ok {
			return
		}
		kind, body, err := wire.Split(message)
		if err != nil || kind != wire.TypeSpans {
			return
		}
		walker, err := wire.WalkSpans(body)
		if spans += walker.Len(); err != nil || walker.Len() == 0 || spans > c.server.config.MaxBatch {
			return
		}
		c.frames.skip(message)
		c.gathered[c.together] = walker
	}
}

// countGathered has what was gathered in the books.
func (c *conn) countGathered() error {
	batches := c.gathered[:c.together]
	if len(batches) > 1 {
		if c.countTogether(batches) {
			c.server.counters.frames.Add(uint64(len(batches) - 1))
			return nil
		}
		c.apart = apartFor
	}
	for i := range batches {
		if i > 0 { // the first has been counted
			c.server.counters.frames.Add(1)
		}
		if err := c.count(batches[i]); err != nil {
			return err
		}
	}
	return nil
}

// countTogether has batches in the books if they are admitted together, and else leaves
// that to others.
func (c *conn) countTogether(batches []wire.SpansWalker) (admitted bool) {
	spans, returned := uint64(0), false
	for i := range batches {
		spans += uint64(batches[i].Len())
	}
	defer func() {
		if returned && !admitted {
			return
		}
		c.received.Store(c.received.Load() + spans)
		if !admitted {
			c.server.counters.dropped[DropBug].Add(spans) // a panic
			c.dropped.Store(c.dropped.Load() + spans)
		}
		c.server.counters.received.Add(spans)
	}()
	_, err := c.admit(batches...)
	if returned = true; err == nil {
		admitted = true
		c.route.Offered()
	}
	return admitted
}
