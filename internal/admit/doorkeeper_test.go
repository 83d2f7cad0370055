package admit

import (
	"math/rand/v2"
	"testing"
)

// TestADoorkeeperKnowsWhatComesAgain: of as many keys as there are budgets for, nearly all
// are known at their second sight, in whatever order they come; of a flood, nearly none is
// taken for one that came before.
func TestADoorkeeperKnowsWhatComesAgain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var d doorkeeper
	keys := make([]uint64, doorkeeperSets/2)
	for i := range keys {
		keys[i] = rnd.Uint64()
		d.hasSeen(keys[i])
	}
	seen := 0
	rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, hash := range keys {
		if d.hasSeen(hash) {
			seen++
		}
	}
	if seen < len(keys)*9/10 {
		t.Errorf("%d of %d keys that came again were known", seen, len(keys))
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
	d.hasSeen(uint64(3)<<50 | 7<<32)
	d.hasSeen(uint64(4)<<50 | 7<<32)
	if d.hasSeen(a) {
		t.Error("a set remembers more than it has room for")
	}
}
