package admit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestLabeler_MakesAKeyTwicePerInterval checks that a key is made at the first two uses of its
// fingerprint only, however many spans have it.
func TestLabeler_MakesAKeyTwicePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nil)
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "web"})
		for interval := range 3 {
			made := 0
			for range 4 {
				batch := batchOf(5)
				if _, ok := h.PublishTogether(func() {}, BatchPart{p, batch}); !ok {
					t.Fatal("it was not published")
				}
				made += batch.Labeler.(*labeler).made
			}
			if made != 2 {
				t.Errorf("interval %d: the key was made %d times", interval, made)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		h.stop(p)
		if h.rows["r"] != 3*4*5 {
			t.Errorf("counted %v", h.rows)
		}
	})
}

// TestLabeler_SpanWithoutFingerprint checks that the key of a span without a fingerprint is made for
// each span. Such keys are never cached or confused with each other.
func TestLabeler_SpanWithoutFingerprint(t *testing.T) {
	h := newHarness(t, nil)
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "web"})
	for range 3 {
		batch := batchOf(6)
		labels := batch.Labeler.(*labeler)
		for i := range batch.Snapshots {
			s := &batch.Snapshots[i]
			s.FingerprintEnd = s.Fingerprint
			labels.keys[i] = key(fmt.Sprint("long ", i%2))
		}
		if _, ok := h.PublishTogether(func() {}, BatchPart{p, batch}); !ok || labels.made != 6 {
			t.Errorf("it was not published, or %d keys were made", labels.made)
		}
	}
	if known := len(p.finder.keys.known); known != 0 {
		t.Errorf("%d keys are cached", known)
	}
	h.stop(p)
	if h.rows["long 0"] != 9 || h.rows["long 1"] != 9 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestLabeler_FloodFillsNoCache checks that fingerprints that occur once, with keys that get masks
// or lose labels, are not cached.
func TestLabeler_FloodFillsNoCache(t *testing.T) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Budgets[span.LabelResource] = 64 })
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "web"})
	for i := range 5000 {
		if reason, ok := h.offer(p, spans(1, key(fmt.Sprintf("GET /users/%d", i)))); !ok {
			t.Fatalf("a batch was refused as %s", reason)
		}
	}
	if known := len(p.finder.keys.known); known > 256 {
		t.Errorf("%d keys are cached", known)
	}
	h.stop(p)
	if h.counted() != 5000 {
		t.Errorf("%d spans were counted", h.counted())
	}
}
