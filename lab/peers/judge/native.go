package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// nativeSender publishes spans with spanstatsd's Go client.
type nativeSender struct{ client *client.Client }

func newNativeSender(socket string) (*nativeSender, error) {
	c, err := client.Open(client.Config{Socket: socket, Origin: client.Origin{Host: "judge"}})
	if err != nil {
		return nil, fmt.Errorf("open client: %w", err)
	}
	return &nativeSender{c}, nil
}

// send publishes the spans. The client resends by itself, so there is no request to repeat.
func (s *nativeSender) send(r request, _ bool) bool {
	batch := make([]client.Snapshot, len(r.spans))
	for i, one := range r.spans {
		batch[i] = client.Snapshot{
			Key: client.Key{
				Service: one.service, Operation: "http.request", Resource: one.spanName.span, Kind: "server",
			},
			Duration: one.duration, End: one.end, TopLevel: true, Weight: float64(r.weight),
		}
	}
	s.client.Publish(batch)
	return true // refused spans are in the client's statistics
}

// throttle waits until the client's buffer, which has 4 MiB, is nearly empty.
func (s *nativeSender) throttle() {
	const nearlyEmpty = 20_000 // spans
	for s.client.Stats().Buffered > nearlyEmpty {
		time.Sleep(time.Millisecond)
	}
}

func (s *nativeSender) finish() (lost float64) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.client.Close(ctx) // spans for which it did not wait are Unsettled
	stats := s.client.Stats()
	for _, reasons := range []map[string]uint64{stats.Refused, stats.Lost} {
		for _, n := range reasons {
			lost += float64(n)
		}
	}
	return lost
}
