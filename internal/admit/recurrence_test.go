package admit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// inIntervals publishes one batch per letter of the script, with a budget of two resources. A
// capital letter is a key with a number. A comma ends an interval.
func inIntervals(t *testing.T, letters string) (rows map[string]uint64) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Budgets[span.LabelResource] = 2 })
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "web"})
		for _, letter := range letters {
			body := spans(1, key(string(letter)))
			switch {
			case letter == ',':
				time.Sleep(10 * time.Second)
				synctest.Wait()
				continue
			case letter >= 'A' && letter <= 'Z':
				if err := p.Define(uint32(letter), key(string(letter))); err != nil {
					t.Fatal(err)
				}
				body = bodyOf(1, func(_ int, frame []byte) []byte {
					return wire.AppendNumbered(frame, uint32(letter), 1000, time.Now().UnixNano(), 0, 1)
				})
			}
			if reason, ok := h.offer(p, body); !ok {
				t.Fatalf("a batch was refused as %s", reason)
			}
		}
		h.stop(p)
		rows = h.rows
	})
	return rows
}

// TestKey_RecursAndKeepsItsRow: a key that occurs twice, with or without a row, has a row in the
// next interval, even if other keys use up the budget first.
func TestKey_RecursAndKeepsItsRow(t *testing.T) {
	for letters, want := range map[string]uint64{
		"aa,xyya": 3, "AA,xyyA": 3, // had a row
		"xyaa,uvvvaa": 3, "xyAA,uvvvAA": 3, // had none at first
		"xya,uvvvaa": 0, "xyA,uvvvAA": 0, // came once
	} {
		if rows := inIntervals(t, letters); rows["a"]+rows["A"] != want {
			t.Errorf("%s became %v", letters, rows)
		}
	}
}

// TestRetry_IsNoRecurrence: retries of a batch whose ring is full count as one use of its keys.
func TestRetry_IsNoRecurrence(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) { c.WaitBudget, a.RingSlots = time.Hour, 256 })
	p := h.NewConnection(span.Origin{Service: "shop"}, 0)
	once := make(chan error, 1)
	if err := p.Publish(spans(200, key("fill"))); err != nil {
		t.Fatal(err)
	}
	go func() {
		once <- p.Publish(bodyOf(200, func(i int, frame []byte) []byte {
			return wire.AppendWhole(frame, key("once "+string(rune(i))), 1000, time.Now().UnixNano(), 0, 1)
		}))
	}()
	time.Sleep(5 * time.Millisecond) // so that it finds no room
	h.aggregator.Start()
	if err := <-once; err != nil {
		t.Fatal(err)
	}
	recurring := 0
	for i := range p.finder.keys.known {
		if k := &p.finder.keys.known[i]; k.lastUse != p.finder.firstUse {
			recurring++
		}
	}
	if recurring > 1 { // the key that has filled the ring
		t.Errorf("%d keys recur", recurring)
	}
	h.stop(p)
}

// TestKeyWithoutItsLabels_IsCachedAtItsSecondUse covers collapsed keys and keys with masks.
func TestKeyWithoutItsLabels_IsCachedAtItsSecondUse(t *testing.T) {
	for _, resource := range []string{"one more", "GET /users/17"} {
		h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Budgets[span.LabelResource] = 4 })
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "web"})
		publish := func(resource string) (known int) {
			if reason, ok := h.offer(p, spans(1, key(resource))); !ok {
				t.Fatalf("a batch was refused as %s", reason)
			}
			return len(p.finder.keys.known)
		}
		for i := range 40 {
			publish("word " + string(rune('a'+i%20))) // until no row is left
		}
		before := len(p.finder.keys.known)
		for i, want := range []int{before, before + 1, before + 1} {
			if known := publish(resource); known != want {
				t.Errorf("after %d more uses %d keys are known, want %d", i, known, want)
			}
		}
		h.stop(p)
	}
}
