package otlp

import (
	"context"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
)

// askEvery is how often a receiver that was silent is asked whether it is back.
const askEvery = 10 * time.Second

// Watch asks a receiver by probes whether anybody is there: at the start, so that a daemon
// without traffic knows it too, and from the time when a payload found nobody until it
// answers again, which ends the pause of what waits.
func (x *Exporter) Watch(ctx context.Context, link *flush.Link) {
	for isFirst := true; ; isFirst = false {
		isThere := x.client.isThere(ctx, x.askEvery)
		switch {
		case ctx.Err() != nil:
			return
		case isThere && isFirst:
			link.Answers()
		case isThere:
			link.Returned()
		default:
			link.Silent()
		}
		lost, again := link.Lost(), (<-chan time.Time)(nil)
		if !isThere {
			lost, again = nil, time.After(x.askEvery)
		}
		select {
		case <-ctx.Done():
		case <-lost:
		case <-again:
		}
	}
}

// isThere says whether a receiver answers a probe within a time.
func (c *client) isThere(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return c.probe(ctx) == nil
}
