package ingest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry"
)

// testKeyCost is about what one of the test's keys costs.
var testKeyCost = costOf(room([]byte("key 123")))

// testShare is the common part of a memory of that many bytes.
func testShare(bytes int) keyShare {
	memory := newKeyMemory(bytes, 1)
	memory.common, memory.share = int64(bytes), 0
	return memory.of(false)
}

// held is what a table has set aside.
func (k *keys) held() int {
	held := cap(k.known)*int(unsafe.Sizeof(knownKey{})) + len(k.slots)*int(unsafe.Sizeof(keySlot{})) + cap(k.numbers)*numberBytes + cap(k.once) + 2*cap(k.marks)
	for i := range k.known {
		held += cap(k.known[i].raw)
	}
	return held
}

// leastHeld is what a table holds that nothing was put into.
const leastHeld = leastKeys * (1 + int(unsafe.Sizeof(knownKey{})+2*unsafe.Sizeof(keySlot{})))

// TestSweptTableHoldsLittle: what a table gives back to the others it must not keep,
// or a tracer with many connections would fill one after the other.
func TestSweptTableHoldsLittle(t *testing.T) {
	share := testShare(1 << 30)
	k := newKeys(8192, 8<<20, share)
	for n := 0; ; n++ {
		raw := fmt.Append(nil, n)
		_, hash := k.find(raw)
		if k.add(raw, hash, keyCached) == none {
			break
		}
	}
	if held := k.held(); held > k.bytes+leastHeld {
		t.Errorf("a full table holds %d bytes, and costs %d", held, k.bytes)
	}
	k.sweep(1)
	if held := k.held(); k.bytes != 0 || share.memory.taken.Load() != 0 || held > leastHeld {
		t.Errorf("a swept table holds %d bytes, and costs %d", held, k.bytes)
	}
}

// TestFarNumberIsPaidFor defines the highest number first.
func TestFarNumberIsPaidFor(t *testing.T) {
	share := testShare(40_000)
	k := newKeys(8192, 8<<20, share)
	if !k.learn(8191, []byte("key")) {
		t.Fatal("there is no room for one number")
	}
	if held := k.held(); held > k.bytes+leastHeld || int64(k.bytes) != share.memory.taken.Load() {
		t.Errorf("the table holds %d bytes and costs %d, of %d taken", held, k.bytes, share.memory.taken.Load())
	}
	other := newKeys(8192, 8<<20, keyShare{memory: share.memory})
	if other.learn(8191, []byte("key")) {
		t.Error("there is room for another")
	}
	if !other.learn(0, []byte("key")) || string(other.known[other.numbered(0)].raw) != "key" {
		t.Error("there is no room for a first one")
	}
}

// TestKeysAgainstMap does random things to a table and to plain maps.
func TestKeysAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	share := testShare(1 << 30)
	const most = 128 + 16 // keys, and as much as 64 numbers cost
	k := newKeys(64, most*testKeyCost, share)
	known, numbers := map[string]string{}, map[uint32]string{}
	interval := uint64(1)
	used := map[string]uint64{}
	for step := range 200_000 {
		raw := fmt.Sprintf("key %d", rnd.IntN(400))
		switch rnd.IntN(20) {
		case 0:
			index, _ := k.find([]byte(raw))
			if index == none {
				break
			}
			number := uint32(rnd.IntN(30))
			if k.learn(number, []byte(raw)) {
				numbers[number] = raw
			}
		case 1:
			interval++
			if k.full {
				keep := map[string]string{}
				for _, pinned := range numbers {
					keep[pinned] = known[pinned]
				}
				for raw, last := range used {
					if last >= interval-1 && known[raw] != "" {
						keep[raw] = known[raw]
					}
				}
				known = keep
			}
			k.sweep(interval - 1)
		default:
			index, hash := k.find([]byte(raw))
			if (index != none) != (known[raw] != "") {
				t.Fatalf("step %d: %q is at %d, known: %q", step, raw, index, known[raw])
			}
			if index == none {
				if index = k.add([]byte(raw), hash, keyCached); index != none {
					known[raw] = raw
				}
			}
			if index != none {
				k.known[index].interval, used[raw] = interval, interval
				if got := string(k.known[index].raw); got != raw {
					t.Fatalf("step %d: %q stands for %q", step, raw, got)
				}
			}
		}
		number := uint32(rnd.IntN(40))
		index := k.numbered(number)
		if want := numbers[number]; (index != none) != (want != "") || index != none && string(k.known[index].raw) != want {
			t.Fatalf("step %d: number %d is at %d, want %q", step, number, index, want)
		}
		pinned := numberBytes * len(k.numbers)
		for i := range k.known {
			if k.known[i].pins > 0 {
				pinned += k.known[i].cost()
			}
		}
		if len(k.known) > 128 || k.bytes > most*testKeyCost || k.pinned != pinned || share.memory.taken.Load() != int64(k.bytes) {
			t.Fatalf("step %d: %d keys of %d bytes", step, len(k.known), k.bytes)
		}
		if held := k.held(); held > k.bytes+leastHeld {
			t.Fatalf("step %d: %d keys hold %d bytes, and cost %d", step, len(k.known), held, k.bytes)
		}
	}
	if len(known) == 0 || len(numbers) == 0 {
		t.Error("the test met nothing")
	}
}

// TestScanKeepsTheHotKeys sends the working set in the midst of keys that are
// never seen again, over several intervals.
func TestScanKeepsTheHotKeys(t *testing.T) {
	k := newKeys(64, 1<<20, testShare(1<<30))
	misses := 0
	use := func(interval uint64, raw string) {
		index, hash := k.find([]byte(raw))
		if index == none {
			misses++
			if index = k.add([]byte(raw), hash, keyCached); index == none {
				return
			}
		}
		k.known[index].resolved = resolved{interval: interval, id: registry.KeyID(1)}
	}
	for interval := uint64(2); interval < 12; interval++ {
		k.sweep(interval - 1)
		misses = 0
		for hot := range 20 {
			use(interval, fmt.Sprint("hot", hot))
		}
		for cold := range 5000 {
			use(interval, fmt.Sprint("cold", interval, cold))
			use(interval, fmt.Sprint("hot", cold%20))
		}
		if hot := misses - 5000; interval > 2 && hot != 0 {
			t.Errorf("interval %d: the hot keys missed %d times", interval, hot)
		}
	}
}
