package ingest

import (
	"errors"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestSettled_SentToClientsThatRequestIt checks that a client that has requested it receives the
// number of settled spans, whether delivered or not, with unchanged features. Other clients receive
// nothing.
func TestSettled_SentToClientsThatRequestIt(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.Interval = 7 * time.Second })
	other := h.connect("other")
	c := h.dial()
	c.send(wire.AppendHello(nil, &wire.Hello{
		Version: wire.Version, Origin: span.Origin{Service: "shop"},
		Settled: true,
	}))
	_, body := c.read()
	if welcome, err := wire.DecodeWelcome(body); err != nil || !welcome.Settled ||
		welcome.Interval != uint64(h.config.Interval) {
		t.Fatalf("welcome %+v: %v", welcome, err)
	}
	wantSettled := func(want uint64) {
		t.Helper()
		for settled, answered := uint64(0), false; !answered || settled < want; {
			switch kind, body := c.read(); kind {
			case wire.TypeFeatures:
				features, err := wire.DecodeFeatures(body)
				if err != nil || !features.Stats || features.Settled <= settled || features.Settled > want {
					t.Fatalf("notified of %+v, want %d: %v", features, want, err)
				}
				settled = features.Settled
			case wire.TypeFlush:
				answered = true
			default:
				t.Fatalf("notified of %d, and then %s", settled, kind)
			}
		}
	}
	c.send(spans(3, key("r")))
	other.send(spans(5, key("r")))
	c.send(wire.AppendFlush(nil, &wire.Flush{ID: 1}))
	wantSettled(3)
	h.mu.Lock()
	h.answer = errors.New("refused")
	h.mu.Unlock()
	c.send(spans(4, key("r")))
	c.send(wire.AppendFlush(nil, &wire.Flush{ID: 2}))
	wantSettled(7)
	h.setFeatures(wire.Features{Stats: true, PeerTags: []string{"a"}})
	for c, want := range map[*tracer]uint64{c: 7, other: 0} {
		kind, body := c.read()
		features, err := wire.DecodeFeatures(body)
		if kind != wire.TypeFeatures || features.Settled != want || len(features.PeerTags) != 1 ||
			err != nil {
			t.Errorf("notified of %s %+v, want %d: %v", kind, features, want, err)
		}
	}
}
