package admit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry"
)

// testKeyCost is roughly the memory of one test key.
var testKeyCost = costOf(keyCapacity([]byte("key 123")))

// testShare returns a share of a memory with that many common bytes.
func testShare(bytes int) keyShare {
	memory := newKeyMemory(bytes, 1)
	memory.common, memory.share = int64(bytes), 0
	return keyShare{memory: &memory}
}

// held returns the number of bytes that are charged for a table.
func (k *keyTable) held() int {
	held := cap(k.known)*int(unsafe.Sizeof(knownKey{})) + len(k.slots)*int(unsafe.Sizeof(keySlot{})) +
		cap(k.numbers)*numberBytes
	for i := range k.known {
		held += cap(k.known[i].keyBytes)
	}
	return held
}

// leastHeld is the number of bytes that an empty table is charged for.
const leastHeld = leastKeys * int(unsafe.Sizeof(knownKey{})+2*unsafe.Sizeof(keySlot{}))

// defined assigns a number to a key, known or not.
func (k *keyTable) defined(number uint32, raw string) bool {
	index, hash := k.find([]byte(raw))
	return k.assign(number, []byte(raw), index, hash)
}

// TestKeyTable_SweepFreesMemory: a sweep frees the memory that it returns to the other publishers.
// Otherwise a tracer with many connections could fill one table after the other.
func TestKeyTable_SweepFreesMemory(t *testing.T) {
	share := testShare(1 << 30)
	k := newKeyTable(8192, 8<<20, share)
	for n := 0; ; n++ {
		raw := fmt.Append(nil, n)
		_, hash := k.find(raw)
		if k.add(raw, hash, forUnnumberedKey) == none {
			break
		}
	}
	if held := k.held(); held > k.share.charged+leastHeld {
		t.Errorf("a full table holds %d bytes, and costs %d", held, k.share.charged)
	}
	k.sweep(firstUseIn(1))
	if held := k.held(); k.share.charged != 0 || share.memory.taken.Load() != 0 || held > leastHeld {
		t.Errorf("a swept table holds %d bytes, and costs %d", held, k.share.charged)
	}
}

// TestKeyTable_HighNumberIsCharged defines the highest number first.
func TestKeyTable_HighNumberIsCharged(t *testing.T) {
	share := testShare(40_000)
	k := newKeyTable(8192, 8<<20, share)
	if !k.defined(8191, "key") {
		t.Fatal("there is no room for one number")
	}
	if held := k.held(); held > k.share.charged+leastHeld || int64(k.share.charged) != share.memory.taken.Load() {
		t.Errorf("the table holds %d bytes and costs %d, of %d used", held, k.share.charged,
			share.memory.taken.Load())
	}
	other := newKeyTable(8192, 8<<20, keyShare{memory: share.memory})
	if other.defined(8191, "key") {
		t.Error("there is room for another")
	}
	if !other.defined(0, "key") || string(other.known[other.indexOfNumber(0)].keyBytes) != "key" {
		t.Error("there is no room for a first one")
	}
}

// TestKeyTable_AgainstMap compares random operations on a table with the same operations on maps.
func TestKeyTable_AgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	share := testShare(1 << 30)
	const most = 128 + 16 // keys, and as much as 64 numbers cost
	k := newKeyTable(64, most*testKeyCost, share)
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
			if k.defined(number, raw) {
				numbers[number] = raw
			}
		case 1:
			interval++
			if k.needsSweep {
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
			k.sweep(firstUseIn(interval - 1))
		default:
			index, hash := k.find([]byte(raw))
			if (index != none) != (known[raw] != "") {
				t.Fatalf("step %d: %q is at %d, known: %q", step, raw, index, known[raw])
			}
			if index == none {
				if index = k.add([]byte(raw), hash, forUnnumberedKey); index != none {
					known[raw] = raw
				}
			}
			if index != none {
				k.known[index].lastUse, used[raw] = firstUseIn(interval), interval
				if got := string(k.known[index].keyBytes); got != raw {
					t.Fatalf("step %d: %q stands for %q", step, raw, got)
				}
			}
		}
		number := uint32(rnd.IntN(40))
		index := k.indexOfNumber(number)
		if want := numbers[number]; (index != none) != (want != "") || index != none &&
			string(k.known[index].keyBytes) != want {
			t.Fatalf("step %d: number %d is at %d, want %q", step, number, index, want)
		}
		pinned := numberBytes * len(k.numbers)
		for i := range k.known {
			if k.known[i].numberCount > 0 {
				pinned += k.known[i].cost()
			}
		}
		if len(k.known) > 128 || k.share.charged > most*testKeyCost || k.numberedBytes != pinned ||
			share.memory.taken.Load() != int64(k.share.charged) {
			t.Fatalf("step %d: %d keys of %d bytes", step, len(k.known), k.share.charged)
		}
		if held := k.held(); held > k.share.charged+leastHeld {
			t.Fatalf("step %d: %d keys hold %d bytes, and cost %d", step, len(k.known), held, k.share.charged)
		}
	}
	if len(known) == 0 || len(numbers) == 0 {
		t.Error("the test met nothing")
	}
}

// TestKeyTable_ScanKeepsHotKeys mixes the working set with keys that occur once, over several intervals.
func TestKeyTable_ScanKeepsHotKeys(t *testing.T) {
	k := newKeyTable(64, 1<<20, testShare(1<<30))
	misses := 0
	use := func(interval uint64, raw string) {
		index, hash := k.find([]byte(raw))
		if index == none {
			misses++
			if index = k.add([]byte(raw), hash, forUnnumberedKey); index == none {
				return
			}
		}
		k.known[index].resolved = resolved{lastUse: firstUseIn(interval), id: registry.KeyID(1)}
	}
	for interval := uint64(2); interval < 12; interval++ {
		k.sweep(firstUseIn(interval - 1))
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

// TestKeyTable_RedefinitionInFullTable repeats a definition that could cause a sweep for each key.
func TestKeyTable_RedefinitionInFullTable(t *testing.T) {
	share := testShare(1 << 30)
	k := newKeyTable(1024, 1<<20, share)
	number := uint32(0)
	for ; ; number++ {
		if !k.defined(number, fmt.Sprint(number, strings.Repeat("k", 2000))) {
			break
		}
	}
	if k.isSweepWorthwhile() {
		t.Errorf("a sweep that frees nothing, with %d of %d bytes pinned", k.numberedBytes, k.share.charged)
	}
	k.setNumber(0, k.indexOfNumber(1))
	if k.isSweepWorthwhile() {
		t.Error("a sweep for one key")
	}
	for n := range number / 2 {
		k.setNumber(n, k.indexOfNumber(number-1))
	}
	before := k.share.charged
	if !k.isSweepWorthwhile() {
		t.Error("no sweep for half of the table")
	}
	k.sweep(afterAllUses)
	if k.share.charged > before*2/3 || share.memory.taken.Load() != int64(k.share.charged) {
		t.Errorf("%d bytes after a sweep of %d, %d in all", k.share.charged, before, share.memory.taken.Load())
	}
	k.release()
	if share.memory.taken.Load() != 0 {
		t.Errorf("%d bytes in all after the release", share.memory.taken.Load())
	}
}

// TestKeyTable_RedefinedKeysAgainstMap assigns numbers to keys that occur once and to keys with several
// numbers, and compares the table with a map. The table must not take more memory than before.
func TestKeyTable_RedefinedKeysAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	k := newKeyTable(64, 1<<20, testShare(1<<30))
	numbers := map[uint32]string{}
	for step := range 100_000 {
		number, raw := uint32(rnd.IntN(40)), fmt.Sprint("once ", step)
		if rnd.IntN(4) == 0 {
			raw = fmt.Sprint("often ", rnd.IntN(10))
		}
		if !k.defined(number, raw) {
			if !k.needsSweep || len(k.known) < 100 {
				t.Fatalf("step %d: there is no room among %d keys", step, len(k.known))
			}
			k.sweep(firstUseIn(1))
			k.defined(number, raw)
		}
		numbers[number] = raw
		number = uint32(rnd.IntN(40))
		index := k.indexOfNumber(number)
		if want := numbers[number]; (index != none) != (want != "") || index != none &&
			string(k.known[index].keyBytes) != want {
			t.Fatalf("step %d: number %d is at %d, want %q", step, number, index, want)
		}
		if index != none {
			if found, _ := k.find(k.known[index].keyBytes); found != index {
				t.Fatalf("step %d: the key at %d is found at %d", step, index, found)
			}
		}
		if held := k.held(); held > k.share.charged+leastHeld {
			t.Fatalf("step %d: %d keys hold %d bytes, and cost %d", step, len(k.known), held, k.share.charged)
		}
	}
}

// TestKeyTable_DefinedWithoutRoom: if the list of numbers does not fit and later fits again,
// the numbers that were defined in between are unlabeled, not undefined.
func TestKeyTable_DefinedWithoutRoom(t *testing.T) {
	share := testShare(40_000)
	other := keyShare{memory: share.memory}
	k := newKeyTable(8192, 8<<20, share)
	if !k.defined(3, "before") || k.isUnlabeled(100) {
		t.Fatal("the first number does not fit, or an undefined one counts as defined")
	}
	for other.charge(100, forNumberedKey) {
	}
	if k.defined(100, "meanwhile") {
		t.Fatal("there is room")
	}
	k.markUnlabeled(100)
	other.shrink(0)
	if !k.defined(200, "afterwards") || !k.isUnlabeled(100) || k.indexOfNumber(100) != none {
		t.Error("a number that was defined is not, or there is no room")
	}
	for number, want := range map[uint32]string{3: "before", 200: "afterwards"} {
		if index := k.indexOfNumber(number); index == none || string(k.known[index].keyBytes) != want {
			t.Errorf("number %d does not stand for the key of %s", number, want)
		}
	}
	if !k.defined(100, "again") || k.isUnlabeled(100) {
		t.Error("a number without a name gets none when it is defined again")
	}
}
