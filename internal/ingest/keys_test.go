package ingest

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// testKeyCost is about what one of the test's keys costs.
const testKeyCost = 340

// TestKeysAgainstMap does random things to a table and to plain maps.
func TestKeysAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var all atomic.Int64
	k := newKeys(64, 128*testKeyCost, &all, 1<<30)
	known, numbers := map[string]string{}, map[uint32]string{}
	cycle := uint64(1)
	used := map[string]uint64{}
	for step := range 200_000 {
		raw := fmt.Sprintf("key %d", rnd.IntN(400))
		switch rnd.IntN(20) {
		case 0:
			index := k.find([]byte(raw))
			if index == none {
				break
			}
			number := uint32(rnd.IntN(30))
			k.define(number, index)
			numbers[number] = raw
		case 1:
			cycle++
			if k.full {
				keep := map[string]string{}
				for _, pinned := range numbers {
					keep[pinned] = known[pinned]
				}
				for raw, last := range used {
					if last >= cycle-1 && known[raw] != "" {
						keep[raw] = known[raw]
					}
				}
				known = keep
			}
			k.sweep(cycle - 1)
		default:
			index := k.find([]byte(raw))
			if (index != none) != (known[raw] != "") {
				t.Fatalf("step %d: %q is at %d, known: %q", step, raw, index, known[raw])
			}
			if index == none {
				if index = k.add([]byte(raw), span.Key{Resource: raw}); index != none {
					known[raw] = raw
				}
			}
			if index != none {
				k.known[index].cycle, used[raw] = cycle, cycle
				if got := k.known[index].key.Resource; got != raw {
					t.Fatalf("step %d: %q stands for %q", step, raw, got)
				}
			}
		}
		number := uint32(rnd.IntN(40))
		index := k.numbered(number)
		if want := numbers[number]; (index != none) != (want != "") || index != none && k.known[index].key.Resource != want {
			t.Fatalf("step %d: number %d is at %d, want %q", step, number, index, want)
		}
		pinned := 0
		for i := range k.known {
			if k.known[i].pins > 0 {
				pinned += k.known[i].cost
			}
		}
		if len(k.known) > 128 || k.bytes > 128*testKeyCost || k.pinned != pinned || all.Load() != int64(k.bytes) {
			t.Fatalf("step %d: %d keys of %d bytes", step, len(k.known), k.bytes)
		}
	}
	if len(known) == 0 || len(numbers) == 0 {
		t.Error("the test met nothing")
	}
}

// TestScanKeepsTheHotKeys sends the working set in the midst of keys that are
// never seen again, over several cycles.
func TestScanKeepsTheHotKeys(t *testing.T) {
	k := newKeys(64, 1<<20, new(atomic.Int64), 1<<30)
	misses := 0
	use := func(cycle uint64, raw string) {
		index := k.find([]byte(raw))
		if index == none {
			misses++
			if index = k.add([]byte(raw), span.Key{}); index == none {
				return
			}
		}
		k.known[index].resolved = resolved{cycle: cycle, id: aggregate.KeyID(1)}
	}
	for cycle := uint64(2); cycle < 12; cycle++ {
		k.sweep(cycle - 1)
		misses = 0
		for hot := range 20 {
			use(cycle, fmt.Sprint("hot", hot))
		}
		for cold := range 5000 {
			use(cycle, fmt.Sprint("cold", cycle, cold))
			use(cycle, fmt.Sprint("hot", cold%20))
		}
		if hot := misses - 5000; cycle > 2 && hot != 0 {
			t.Errorf("cycle %d: the hot keys missed %d times", cycle, hot)
		}
	}
}
