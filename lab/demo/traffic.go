package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// Sent counts the spans that the client accepted.
type Sent struct {
	Spans    uint64 `json:"spans"`
	Errors   uint64 `json:"errors"`
	TopLevel uint64 `json:"top_level"`
	Duration uint64 `json:"duration_ns"`
}

func (s *Sent) add(batch []client.Snapshot) {
	for i := range batch {
		s.Spans++
		s.Duration += uint64(batch[i].Duration)
		if batch[i].Error {
			s.Errors++
		}
		if batch[i].TopLevel {
			s.TopLevel++
		}
	}
}

// traffic is the running shop: one client per service.
type traffic struct {
	rnd     *rand.Rand
	clients [services]*client.Client
	batches [services][]client.Snapshot
	sent    Sent
}

// liveAge is short, so that the user of the demo sees spans soon after they end.
const liveAge = 100 * time.Millisecond

// openShop connects the shop's tracers to the daemon's socket.
func openShop(socket string) (*traffic, error) {
	t := &traffic{rnd: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	for i, name := range serviceNames {
		c, err := client.Open(client.Config{
			Socket: socket, Name: "demo", MaxAge: liveAge,
			Origin: client.Origin{
				Host: "shop-pod", Env: "demo", Version: "1.0.0", Service: name, Lang: "go",
				TracerVersion: "demo", RuntimeID: fmt.Sprintf("demo-%s", name), ContainerID: "demo-" + name,
			},
		})
		if err != nil {
			return nil, fmt.Errorf("open tracer of %s: %w", name, err)
		}
		t.clients[i] = c
	}
	return t, nil
}

// tick is how often the shop generates the requests due since the last tick.
const tick = 20 * time.Millisecond

// run generates about rate spans per second until the context is done.
func (t *traffic) run(ctx context.Context, rate int) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	begun := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			due := uint64(now.Sub(begun).Seconds() * float64(rate))
			for made := t.sent.Spans; made < due; {
				made += t.serve(now)
			}
		}
	}
}

// serve simulates one request, publishes the spans of each service as one batch, and returns
// the number of spans.
func (t *traffic) serve(now time.Time) (spans uint64) {
	request := pick(t.rnd)
	for i := range request.steps {
		s := &request.steps[i]
		t.batches[s.service] = append(t.batches[s.service], s.snapshot(t.rnd, now))
	}
	for service, batch := range t.batches {
		if len(batch) == 0 {
			continue
		}
		spans += uint64(len(batch))
		if t.clients[service].Publish(batch) {
			t.sent.add(batch)
		}
		t.batches[service] = batch[:0]
	}
	return spans
}

// close closes all tracers concurrently, because each delivers its buffered spans and waits for
// the same flush.
func (t *traffic) close(ctx context.Context) error {
	failed := make([]error, len(t.clients))
	var closing sync.WaitGroup
	for i, c := range t.clients {
		closing.Go(func() {
			if err := c.Close(ctx); err != nil {
				failed[i] = fmt.Errorf("close tracer of %s: %w", serviceNames[i], err)
			}
		})
	}
	closing.Wait()
	return errors.Join(failed...)
}
