package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// slotTime is the time window in which a client publishes spans with the same name.
const slotTime = 50 * time.Millisecond

// closeTimeout limits how long a client waits on Close for the outcome of the spans that it has
// written.
const closeTimeout = time.Minute

// startClients starts clients that publish until ctx is done and then close.
func (e *episode) startClients(ctx context.Context) {
	total := e.goClients
	for _, isPresent := range []bool{e.hasJava, e.hasPython, e.hasNode, e.hasDisconnecting} {
		if isPresent {
			total++
		}
	}
	open := func(name string, publish func(context.Context, *account, int) error) {
		a := &account{name: name, hasLowCapacity: e.hasLowCapacity || name == disconnecting, published: counts{}}
		e.accounts = append(e.accounts, a)
		e.clients.Go(func() {
			if err := publish(ctx, a, e.rate/total); err != nil {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.errs = append(e.errs, fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	for i := range e.goClients {
		open(fmt.Sprint("go-", i), e.publishGo)
	}
	if e.hasDisconnecting {
		open(disconnecting, e.publishAndDisconnect)
	}
	for i := range e.rawClients {
		open(disconnecting, func(ctx context.Context, a *account, _ int) error { return e.publishRaw(ctx, a, i) })
	}
	if e.hasJava {
		open("java", e.publishJava)
	}
	if e.hasPython {
		open("python", e.publishPython)
	}
	if e.hasNode {
		open("node", e.publishNode)
	}
}

// publishGo publishes with the Go client.
func (e *episode) publishGo(ctx context.Context, a *account, rate int) error {
	c, err := client.Open(e.config(a.name))
	if err != nil {
		return err
	}
	a.publish(ctx, e.flushing(ctx), c, rate, time.Now())
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	err = c.Close(closing)
	a.close(c.Stats())
	return err
}

// flushing returns the context for flush requests in half of the episodes, otherwise nil.
func (e *episode) flushing(ctx context.Context) context.Context {
	if e.seed%2 == 0 || slices.Contains(e.scenario.destinations, "prometheus") {
		return nil
	}
	return ctx
}

func (e *episode) config(name string) client.Config {
	return client.Config{
		Socket: e.daemon.socket(), Origin: client.Origin{Service: name, Env: "kills"}, Name: name,
		MaxAge: e.maxAge, MaxBackoff: e.maxBackoff, BufferBytes: 32 << 20, MaxKept: e.maxKept(),
	}
}

// publish publishes until ctx is done. Span names contain the time since started. Unless flushing is
// nil, it also requests a flush about once per second.
func (a *account) publish(ctx, flushing context.Context, c *client.Client, rate int, started time.Time) {
	batch := make([]client.Snapshot, 0, 1000)
	start := time.Now()
	for offered := 0; ctx.Err() == nil; pause(ctx, 10*time.Millisecond) {
		if flushing != nil && rand.IntN(100) == 0 {
			go func() { _ = c.Flush(flushing) }() // fails if the daemon is killed first
		}
		for due := int(time.Since(start).Seconds() * float64(rate)); offered < due; offered += len(batch) {
			s := slot{a.name, fmt.Sprint("GET /s/", int(time.Since(started)/slotTime))}
			batch = fill(batch[:min(due-offered, cap(batch))], s)
			if c.Publish(batch) {
				a.published[s] += uint64(len(batch))
			}
		}
	}
}

// close adds the final statistics of a closed client.
func (a *account) close(s client.Stats) {
	a.ambiguous += s.Ambiguous
	a.died += s.Unconfirmed
	for _, spans := range s.Lost {
		a.lost += spans
	}
}

// disconnecting is the name of the account of clients that disconnect without waiting for outcomes or
// crash.
const disconnecting = "disconnecting"

// publishAndDisconnect runs clients one after another. Most of them close without waiting for the
// outcome.
func (e *episode) publishAndDisconnect(ctx context.Context, a *account, rate int) error {
	random := rand.New(rand.NewPCG(e.seed, 3))
	started := time.Now()
	for ctx.Err() == nil {
		c, err := client.Open(e.config(a.name))
		if err != nil {
			return err
		}
		publishing, stop := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(2*time.Second))))
		a.publish(publishing, e.flushing(publishing), c, rate, started)
		stop()
		wait := time.Duration(random.Int64N(int64(time.Second)))
		if ctx.Err() != nil || random.IntN(4) == 0 {
			wait = closeTimeout
		}
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
		err = c.Close(closing)
		cancel()
		stats := c.Stats()
		a.close(stats)
		life, _ := e.daemon.statusAddress()
		fmt.Fprintf(e.log, "seed %d life %d: a client disconnected in slot %d with error %v: %+v\n", e.seed, life,
			int(time.Since(started)/slotTime), err, stats)
		a.unsettled += stats.Unsettled
	}
	a.died, a.lost = a.died+a.lost, 0 // closed without time to deliver
	return nil
}

// fill fills batch with spans of one slot, using a few keys.
func fill(batch []client.Snapshot, s slot) []client.Snapshot {
	now := time.Now()
	for i := range batch {
		batch[i] = client.Snapshot{
			Key: client.Key{
				Service: s.service, Operation: "http.request", Resource: s.name, Type: "web", Kind: "server",
				HTTPStatus: uint32(200 + i%3),
			},
			Duration: time.Duration(1+i) * time.Millisecond, End: now, TopLevel: true,
		}
	}
	return batch
}
