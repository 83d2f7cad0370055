package registry

import (
	"math/rand/v2"
	"testing"
)

// TestAFilterHasAllThatWasAddedAndLittleElse fills a generation with as many hashes as the
// essay says.
func TestAFilterHasAllThatWasAddedAndLittleElse(t *testing.T) {
	f := newBloomFilter(mostFilterBytes)
	const now, before generation = 1, 0
	const added = 500_000
	rnd := rand.New(rand.NewPCG(1, 20))
	hashes := make([]uint64, 2*added)
	for i := range hashes {
		hashes[i] = rnd.Uint64()
		if i < added {
			f.add(now, hashes[i])
		}
	}
	wrong := 0
	for i, hash := range hashes {
		switch {
		case f.has(hash)[before]:
			t.Fatalf("hash %d was added to another interval", i)
		case f.has(hash)[now] != (i < added):
			if wrong++; i < added {
				t.Fatalf("hash %d was added, and is not there", i)
			}
		}
	}
	if wrong > added/1000 {
		t.Errorf("%d of %d hashes that were not added are there", wrong, added)
	}
	f.add(before, hashes[0])
	if f.clear(now); !f.has(hashes[0])[before] || f.has(hashes[0])[now] {
		t.Error("a clear emptied another interval, or did not empty its own")
	}
}
