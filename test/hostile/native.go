package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// nativeSender is a well-behaved sender that uses the client library and a daemon's native socket.
type nativeSender struct {
	name, socket string
	keys         int // number of distinct resources
	account      *account
	ledger       *ledger
}

// run publishes until stop is closed. When it returns, each span is delivered or reported as lost.
func (s *nativeSender) run(ctx context.Context, stop chan struct{}) error {
	c, err := client.Open(client.Config{
		Socket: s.socket, Origin: client.Origin{Service: s.name, Env: s.name}, Name: s.name,
		MaxAge: 200 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	for {
		batch := s.batch()
		c.Publish(batch)
		select {
		case <-stop:
			return s.close(ctx, c)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(20+rand.IntN(100)) * time.Millisecond):
			sent := c.Stats().Sent
			s.ledger.change(func() {
				if sent > s.account.attempts {
					s.account.attempts, s.account.last = sent, time.Now()
				}
			})
		}
	}
}

// batch returns a few spans and adds them to the account.
func (s *nativeSender) batch() []client.Snapshot {
	batch := make([]client.Snapshot, 1+rand.IntN(30))
	sum := counts{}
	for i := range batch {
		key := client.Key{
			Service: s.name, Operation: "http.request", Type: "web", Kind: "server", HTTPStatus: 200,
			Resource: fmt.Sprintf("GET /orders/of/%d", rand.IntN(s.keys)),
		}
		batch[i] = client.Snapshot{
			Key: key, End: time.Now(), Error: rand.IntN(7) == 0, TopLevel: true,
			Duration: time.Duration(1 + rand.Int64N(int64(2*time.Second))),
		}
		sum.add(counts{1, bit(batch[i].Error), uint64(batch[i].Duration)})
	}
	s.ledger.change(func() { s.account.sent.add(sum) })
	return batch
}

// close delivers the remaining spans. Spans that the client reports as lost are an error, since there
// was enough time to deliver them.
func (s *nativeSender) close(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		return fmt.Errorf("%s: deliver the remaining spans: %w", s.name, err)
	}
	stats := c.Stats()
	for _, reasons := range []map[string]uint64{stats.Refused, stats.Lost} {
		for reason, spans := range reasons {
			if spans > 0 {
				return fmt.Errorf("%s: the client lost %d spans with reason %s", s.name, spans, reason)
			}
		}
	}
	if stats.Unconfirmed > 0 {
		return fmt.Errorf("%s: the client reports that %d spans may be lost with a daemon", s.name,
			stats.Unconfirmed)
	}
	return nil
}
