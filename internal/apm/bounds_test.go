package apm

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
)

// The tests of this file hold bounds to the last one that is allowed.

// TestThereAreAsManyConnectionsAsThereMayBe: while none of them is idle one more is
// rejected, whoever has it.
func TestThereAreAsManyConnectionsAsThereMayBe(t *testing.T) {
	l := connLimiter{max: 3, conns: map[*conn]struct{}{}}
	for i := range l.max {
		if !l.add(&conn{}) {
			t.Errorf("connection %d of %d was rejected", i+1, l.max)
		}
	}
	if l.add(&conn{}) || len(l.conns) != l.max {
		t.Errorf("there are %d connections of %d", len(l.conns), l.max)
	}
}

// TestAPublisherThatABodyNeedsStays: a body of many base services takes no publisher from
// itself; the next body takes the one that was used longest ago.
func TestAPublisherThatABodyNeedsStays(t *testing.T) {
	h := newHarness(t)
	p, now := &h.publishers, time.Now()
	p.max = 2
	for i, service := range []string{"a", "b", "c"} {
		p.parts = append(p.parts, admit.Part{Publisher: p.get(origin(service), now.Add(time.Duration(i)))})
	}
	if p.count() != 3 {
		t.Fatalf("%d of three publishers are left that one body needs", p.count())
	}
	p.parts = p.parts[:0]
	p.get(origin("d"), now.Add(time.Hour))
	if p.byOrigin[origin("a")] != nil || p.byOrigin[origin("b")] == nil || p.count() != 3 {
		t.Errorf("%d publishers are left", p.count())
	}
}
