package ingest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// look finds a key as a connection does, and says whether by following.
func look(t *testing.T, k *keys, raw string) (followed bool) {
	t.Helper()
	frame := wire.AppendWhole(wire.BeginSpans(nil), []byte(raw), 1e6, 1<<60, 0, 1)
	wire.EndSpans(frame, 0, 1)
	_, body, err := wire.Split(frame[wire.HeaderLen:])
	if err != nil {
		t.Fatal(err)
	}
	walker, err := wire.WalkSpans(body)
	var b block
	if err != nil || walker.Commons(b.read[:]) != 1 {
		t.Fatalf("%q is no key of a common snapshot: %v", raw, err)
	}
	index := none
	if followed = k.follow(&walker, b.read[:1], &b.found, 0, 0) == 1; followed {
		index = int(b.indexes[0])
	} else {
		var hash uint64
		if k.trust < 0 { // as findAny does
			k.trust++
		}
		if index, hash = k.find([]byte(raw)); index == none {
			if k.add([]byte(raw), hash, keyCached) == none {
				return false
			}
			index, _ = k.find([]byte(raw))
		}
		k.came(index)
	}
	if got := string(k.known[index].raw); got != raw {
		t.Fatalf("%q stands for %q", raw, got)
	}
	return followed
}

// TestRotationIsFollowed: keys that come in the same order are guessed after the first
// round, once there is trust again.
func TestRotationIsFollowed(t *testing.T) {
	k := newKeys(128, 1<<20, testShare(1<<30))
	followed := 0
	for range 100 {
		for i := range 100 {
			if look(t, k, fmt.Sprint("key", i)) {
				followed++
			}
		}
	}
	if followed < 9700 {
		t.Errorf("%d of 10000 keys were followed", followed)
	}
}

// TestDisorderIsNotGuessed looks keys up in no order, while the table is swept and
// runs full: what is followed is right, and guesses are few.
func TestDisorderIsNotGuessed(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	k := newKeys(64, 96*testKeyCost, testShare(1<<30))
	guesses := 0
	for step := range 100_000 {
		if step%1000 == 0 {
			k.sweep(uint64(step)) // nothing is of that interval, so all are thrown out
		}
		if k.trust >= 0 {
			guesses++
		}
		look(t, k, fmt.Sprintf("key %d", rnd.IntN(300)))
	}
	if guesses < 1000 || guesses > 3000 {
		t.Errorf("%d guesses in 100000 keys in no order", guesses)
	}
}

// TestTrustComesBack: keys that come in no order take the trust away, and a rotation that
// follows them brings it back.
func TestTrustComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nil)
		h.Server.features.Store(&wire.Features{Stats: true})
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "web"})
		rnd := rand.New(rand.NewPCG(1, 3))
		publish := func(next func(i int) int) {
			for batch := range 20 {
				frame := wire.BeginSpans(nil)
				for i := range 100 {
					frame = wire.AppendWhole(frame, key(fmt.Sprint("r", next(100*batch+i))), 1e6, time.Now().UnixNano(), 0, 1)
				}
				wire.EndSpans(frame, 0, 100)
				_, body, err := wire.Split(frame[wire.HeaderLen:])
				if err != nil {
					t.Fatal(err)
				}
				if reason, ok := p.Publish(body); !ok {
					t.Fatalf("a batch was refused as %s", reason)
				}
			}
		}
		for range 3 {
			if publish(func(int) int { return rnd.IntN(40) }); p.keys.trust >= 0 {
				t.Errorf("after keys in no order the trust is %d", p.keys.trust)
			}
			if publish(func(i int) int { return i % 40 }); p.keys.trust != trustMost {
				t.Errorf("after a rotation the trust is %d, want %d", p.keys.trust, trustMost)
			}
		}
		p.Close()
		h.stop()
	})
}
