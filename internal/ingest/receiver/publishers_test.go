package receiver

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// newPublishers returns publishers with rings that are never drained.
func newPublishers(t *testing.T, most int) *Publishers {
	t.Helper()
	counting := aggregate.DefaultConfig()
	counting.Deliver = func(*aggregate.Sealed) {}
	aggregator, err := aggregate.New(counting)
	if err != nil {
		t.Fatal(err)
	}
	config := admit.DefaultConfig()
	config.Aggregator = aggregator
	by, err := admit.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return NewPublishers(by, most, 16, true)
}

func origin(service string) span.Origin { return span.Origin{Service: service} }

// TestPublishers_UnusedOriginExpires also checks that the publisher is closed.
func TestPublishers_UnusedOriginExpires(t *testing.T) {
	p := newPublishers(t, 8)
	now := time.Now()
	for _, service := range []string{"a", "b", "c"} {
		p.getOrCreate(origin(service), now)
		now = now.Add(publisherTimeout / 2)
	}
	if p.Expire(now); p.Count() != 1 {
		t.Errorf("%d origins are kept", p.Count())
	}
	if p.Expire(now.Add(publisherTimeout)); p.Count() != 0 {
		t.Errorf("%d origins are kept", p.Count())
	}
}

// TestPublishers_NeededByBodyStay checks that a body with many base services evicts none of its own publishers.
// The next body evicts the least recently used one.
func TestPublishers_NeededByBodyStay(t *testing.T) {
	p, now := newPublishers(t, 2), time.Now()
	for i, service := range []string{"a", "b", "c"} {
		p.parts = append(p.parts, admit.BatchPart{Publisher: p.getOrCreate(origin(service), now.Add(time.Duration(i)))})
	}
	if p.Count() != 3 {
		t.Fatalf("%d of three publishers are left that one body needs", p.Count())
	}
	p.parts = p.parts[:0]
	p.getOrCreate(origin("d"), now.Add(time.Hour))
	if p.byOrigin[origin("a")] != nil || p.byOrigin[origin("b")] == nil || p.Count() != 3 {
		t.Errorf("%d publishers are left", p.Count())
	}
}
