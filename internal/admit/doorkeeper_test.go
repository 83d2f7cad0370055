package admit

import (
	"math/rand/v2"
	"slices"
	"testing"
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
		d.hasSeen(keys[i])
	}
	// In the daemon a key that is known leaves for the table, and makes room for others.
	for range 100 {
		rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		keys = slices.DeleteFunc(keys, d.hasSeen)
	}
	if len(keys) > 0 {
		t.Errorf("%d keys that came again and again are not known", len(keys))
	}
	mistaken := 0
	const flood = 1 << 20
	for range flood {
		if d.hasSeen(rnd.Uint64()) {
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
	if d.hasSeen(a) || d.hasSeen(b) || !d.hasSeen(a) || !d.hasSeen(b) {
		t.Error("two keys of one set were not both known the second time")
	}
}
