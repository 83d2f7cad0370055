package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// ours is a polite sender that uses the client library and a daemon's native socket.
type ours struct {
	name, socket string
	keys         int // number of distinct resources
	account      *account
	ledger       *ledger
}

// run publishes until stop is closed. When it returns, each span is delivered or reported as lost.
func (o *ours) run(ctx context.Context, stop chan struct{}) error {
	c, err := client.Open(client.Config{
		Socket: o.socket, Origin: client.Origin{Service: o.name, Env: o.name}, Name: o.name,
		MaxAge: 200 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	for {
		batch := o.batch()
		c.Publish(batch)
		select {
		case <-stop:
			return o.end(ctx, c)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(20+rand.IntN(100)) * time.Millisecond):
			sent := c.Stats().Sent
			o.ledger.change(func() {
				if sent > o.account.tries {
					o.account.tries, o.account.last = sent, time.Now()
				}
			})
		}
	}
}

// batch returns a few spans and adds them to the account.
func (o *ours) batch() []client.Snapshot {
	batch := make([]client.Snapshot, 1+rand.IntN(30))
	what := counts{}
	for i := range batch {
		key := client.Key{
			Service: o.name, Operation: "http.request", Type: "web", Kind: "server", HTTPStatus: 200,
			Resource: fmt.Sprintf("GET /orders/of/%d", rand.IntN(o.keys)),
		}
		batch[i] = client.Snapshot{
			Key: key, End: time.Now(), Error: rand.IntN(7) == 0, TopLevel: true,
			Duration: time.Duration(1 + rand.Int64N(int64(2*time.Second))),
		}
		what.add(counts{1, bit(batch[i].Error), uint64(batch[i].Duration)})
	}
	o.ledger.change(func() { o.account.handed.add(what) })
	return batch
}

// end delivers the remaining spans. Spans that the client reports as lost are an error, since there was
// enough time to deliver them.
func (o *ours) end(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		return fmt.Errorf("%s: hand over the rest: %w", o.name, err)
	}
	s := c.Stats()
	for _, reasons := range []map[string]uint64{s.Refused, s.Lost} {
		for why, spans := range reasons {
			if spans > 0 {
				return fmt.Errorf("%s: the client lost %d spans as %s", o.name, spans, why)
			}
		}
	}
	if s.Unconfirmed > 0 {
		return fmt.Errorf("%s: the client says that a daemon may have taken %d spans with it", o.name,
			s.Unconfirmed)
	}
	return nil
}
