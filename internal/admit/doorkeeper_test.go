package admit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestADoorkeeperKnowsWhatComesAgain: keys that come again and again are known soon, all of
// them and in whatever order they come, also where they are as many as it can remember; of a
// flood, nearly none is taken for one that came before.
func TestADoorkeeperKnowsWhatComesAgain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var d doorkeeper
	keys := make([]uint64, 2*doorkeeperSets)
	for i := range keys {
		keys[i] = rnd.Uint64()
		d.note(keys[i])
	}
	comes := func(key uint64) (wasSeen bool) {
		if wasSeen = d.hasSeen(key); !wasSeen {
			d.note(key)
		}
		return wasSeen
	}
	// In the daemon a key that is known leaves for the table, and makes room for others.
	for range 100 {
		rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		keys = slices.DeleteFunc(keys, comes)
	}
	if len(keys) > 0 {
		t.Errorf("%d keys that came again and again are not known", len(keys))
	}
	mistaken := 0
	const flood = 1 << 20
	for range flood {
		if comes(rnd.Uint64()) {
			mistaken++
		}
	}
	if mistaken > flood/1000 {
		t.Errorf("%d of a flood of %d keys were taken for others", mistaken, flood)
	}
}

// TestTwoKeysInTurnsAreBothKnown: keys of one set do not push each other out.
func TestTwoKeysInTurnsAreBothKnown(t *testing.T) {
	var d doorkeeper
	a, b := uint64(1)<<50|7<<32, uint64(2)<<50|7<<32
	d.note(a)
	d.note(b)
	if !d.hasSeen(a) || !d.hasSeen(b) {
		t.Error("two keys of one set were not both known the second time")
	}
}

// TestAKeyThatLostLabelsIsKeptWhenItComesAgain, once the table is not small any more.
func TestAKeyThatLostLabelsIsKeptWhenItComesAgain(t *testing.T) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Budgets[span.LabelResource] = 2 })
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "web"})
	publish := func(resource string) (known int) {
		if reason, ok := h.offer(p, spans(1, key(resource))); !ok {
			t.Fatalf("a batch was refused as %s", reason)
		}
		return len(p.keys.known)
	}
	for i := range fewKeys {
		publish(fmt.Sprint("resource ", i))
	}
	for i, want := range []int{fewKeys, fewKeys + 1, fewKeys + 1} {
		if known := publish("one more"); known != want {
			t.Errorf("after coming %d of one more %d keys are known, want %d", i, known, want)
		}
	}
	h.stop(p)
}
