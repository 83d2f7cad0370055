package registry

import (
	"math/rand/v2"
	"testing"
)

// TestFilter_HasRecurringValues adds as many values as the comment of filter allows, a tenth of
// them twice.
func TestFilter_HasRecurringValues(t *testing.T) {
	f := newFilter(mostFilterBytes)
	const added = 500_000
	rnd := rand.New(rand.NewPCG(1, 20))
	hashes := make([]uint64, 2*added)
	wrong := 0
	for i := range hashes {
		hashes[i] = rnd.Uint64()
		if i >= added {
			if f.usedOnce.has(hashes[i]) {
				wrong++
			}
			continue
		}
		f.recordUses(hashes[i : i+1])
		if i%10 == 0 {
			if isFirstUse := f.recordUses(hashes[i : i+1]); isFirstUse {
				t.Fatalf("value %d came before", i)
			}
		}
	}
	if wrong > added/500 {
		t.Errorf("%d of %d values that did not come are there", wrong, added)
	}
	f.beginInterval()
	for i, hash := range hashes {
		switch recurred := i < added && i%10 == 0; {
		case f.usedOnce.has(hash), f.recurred.has(hash):
			t.Fatalf("value %d came in the interval that has just started", i)
		case recurred && !f.recurredBefore.has(hash):
			t.Fatalf("value %d recurred, and is not known", i)
		case !recurred && f.recurredBefore.has(hash):
			wrong++
		}
	}
	if wrong > added/500 {
		t.Errorf("%d of %d values that did not recur are known", wrong, added)
	}
	if f.beginInterval(); f.recurredBefore.has(hashes[0]) {
		t.Error("a value is known for longer than an interval")
	}
}
