package ingest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestRecycledKeysAgainstMap defines numbers for keys of which some come again and
// most do not, in a table that has more than a few, and holds it against a map.
func TestRecycledKeysAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	share := testShare(1 << 30)
	k := newKeys(4096, 1<<20, share)
	numbers := map[uint32]string{}
	recycled := 0
	for step := range 60_000 {
		number := uint32(rnd.IntN(100))
		raw := fmt.Sprint("new ", step, strings.Repeat("x", rnd.IntN(40)))
		if rnd.IntN(3) == 0 {
			raw = fmt.Sprint("again ", rnd.IntN(300))
		}
		before := len(k.known)
		index, _ := k.find([]byte(raw))
		if !k.learn(number, []byte(raw)) {
			k.sweep(^uint64(0))
			if !k.learn(number, []byte(raw)) {
				t.Fatalf("step %d: no room after a sweep", step)
			}
			before = len(k.known)
		}
		if _, known := numbers[number]; known && index == none && len(k.known) == before {
			recycled++
		}
		numbers[number] = raw
		if step%16 != 0 {
			continue
		}
		pinned := numberBytes * len(k.numbers)
		for i := range k.known {
			if index, _ := k.find(k.known[i].raw); index != i {
				t.Fatalf("step %d: key %d is found at %d", step, i, index)
			}
			if k.known[i].pins > 0 {
				pinned += k.known[i].cost()
			}
		}
		for number, raw := range numbers {
			if index := k.numbered(number); index == none || string(k.known[index].raw) != raw {
				t.Fatalf("step %d: number %d is at %d, want %q", step, number, index, raw)
			}
		}
		if held := k.held(); held > k.bytes+leastHeld || k.pinned != pinned || share.memory.taken.Load() != int64(k.bytes) {
			t.Fatalf("step %d: %d bytes are held, %d cost, %d pinned, want %d", step, held, k.bytes, k.pinned, pinned)
		}
	}
	if recycled < 10_000 {
		t.Errorf("%d of 60000 keys took the place of another", recycled)
	}
}

// TestKeysThatComeInTurnsAreRemembered: a working set of thousands is known after some
// rounds, though the marks of many fall together; a scan beside it is not.
func TestKeysThatComeInTurnsAreRemembered(t *testing.T) {
	k := newKeys(8192, 8<<20, testShare(1<<30))
	misses := 0
	use := func(raw string) {
		index, hash := k.find([]byte(raw))
		if index != none {
			return
		}
		misses++
		if k.again(hash) {
			k.add([]byte(raw), hash, keyCached)
		}
	}
	const set = 4096
	for round := range 30 {
		misses = 0
		for key := range set {
			use(fmt.Sprint("key ", key))
			use(fmt.Sprint("scan ", round, key))
		}
	}
	if misses > set+set/50 {
		t.Errorf("in the last round %d of %d keys were missed, beside a scan", misses-set, set)
	}
	if scanned := len(k.known) - set; scanned > fewKeys+30 {
		t.Errorf("%d keys of a scan are remembered", scanned)
	}
}

// TestNumbersNeedTheRoomOfMarks: as many keys have numbers as there is room for, and
// none too few for the marks.
func TestNumbersNeedTheRoomOfMarks(t *testing.T) {
	const most = 80 << 10
	for name, k := range map[string]*keys{
		"a connection's": newKeys(8192, most, testShare(1<<30)),
		"common":         newKeys(8192, 1<<30, testShare(most)),
	} {
		n, hadMarks := uint32(0), false
		for ; k.learn(n, fmt.Append(nil, "key ", n)); n++ {
			hadMarks = hadMarks || k.marks != nil
		}
		if room := most - k.bytes; !hadMarks || k.marks != nil || room > 4<<10 {
			t.Errorf("%s memory: %d numbers leave %d bytes, %d marks", name, n, room, len(k.marks))
		}
		if taken := k.share.memory.taken.Load(); taken != int64(k.bytes) {
			t.Errorf("%s memory: %d bytes are taken for %d", name, taken, k.bytes)
		}
	}
}

// TestFloodIsNotLookedFor: of keys that are never found each fourth is looked for, and
// all are again once one was.
func TestFloodIsNotLookedFor(t *testing.T) {
	k := newKeys(64, 1<<20, testShare(1<<30))
	looks := func(keys int) (n int) {
		for range keys {
			if k.isWorthLooking() {
				n++
			}
		}
		return n
	}
	if n := looks(floodAfter); n != floodAfter {
		t.Errorf("%d of the first %d keys were looked for", n, floodAfter)
	}
	if n := looks(400); n != 400/floodLooks {
		t.Errorf("%d of 400 keys of a flood were looked for", n)
	}
	k.came(0)
	if n := looks(floodAfter); n != floodAfter {
		t.Errorf("%d of %d keys were looked for after one was found", n, floodAfter)
	}
}

// TestKeysThatLoseNothingAreKnownAtOnce: a working set within its budgets is decoded
// once, however large it is; what loses its labels is not remembered so soon.
func TestKeysThatLoseNothingAreKnownAtOnce(t *testing.T) {
	const set = 1000
	for _, budget := range []int{set, fewKeys} {
		h := start(t, func(_ *Config, a *aggregate.Config) { a.Budgets[registry.FieldResource] = budget })
		c := h.connect("web")
		for range 2 {
			for i := range set {
				c.send(spans(1, key(fmt.Sprint(i))))
			}
		}
		c.settle()
		h.stop()
		decoded := h.Stats().KeysDecoded
		if known := decoded == set; known != (budget == set) || h.dropped() != 0 {
			t.Errorf("with a budget of %d keys were decoded %d times for a set of %d twice", budget, decoded, set)
		}
	}
}

// TestKeysOfARetryHaveNotComeAgain: a batch that is tried several times, since the ring is
// full, has no key remembered for that, nor counted twice.
func TestKeysOfARetryHaveNotComeAgain(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		a.RingSlots, a.Budgets[registry.FieldResource] = 1024, 1
		c.Leeway = 5 * blockedPause
	})
	h.Server.features.Store(&wire.Features{Stats: true})
	c := &conn{admission: admission{server: h.Server}}
	c.enter(true)
	batch := func(name string, keys int) []byte {
		frame := wire.BeginSpans(nil)
		for i := range keys {
			frame = wire.AppendWhole(frame, key(fmt.Sprint(name, i)), 1000, time.Now().UnixNano(), 0, 1)
		}
		wire.EndSpans(frame, 0, keys)
		return frame
	}
	send := func(batches ...[]byte) {
		c.apart = 0
		c.frames = newFrames(&once{data: slices.Concat(batches...)}, 1<<20, time.Second, nil, ample())
		for message, err := c.frames.next(); err == nil; message, err = c.frames.next() {
			if _, err := c.handle(message); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(batch("few", fewKeys+44))
	send(batch("many", 500))
	known, decoded, dropped := len(c.keys.known), uint64(fewKeys+44+500), uint64(0)
	expect := func(what string, keys, refused int) {
		t.Helper()
		decoded, dropped = decoded+uint64(keys), dropped+uint64(refused)
		if stats := h.Stats(); len(c.keys.known) != known || stats.KeysDecoded != decoded || stats.Dropped["ring_full"] != dropped {
			t.Errorf("%s: %d keys are known, %d were before; %d were decoded, want %d; dropped %v, want %d",
				what, len(c.keys.known), known, stats.KeysDecoded, decoded, stats.Dropped, dropped)
		}
	}
	const most = 13 * floodLooks // so that each time the same are looked for
	send(batch("no room", most))
	expect("one", most, most)
	send(batch("none", most), batch("for these", most))
	expect("two together", 2*most, 2*most)
	send(batch("a little", 5))
	expect("one with room", 5, 0)
	c.leave()
	h.Abandon()
}
