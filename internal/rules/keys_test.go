package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// write writes a source.
func (k *Keys) write(source string) {
	k.Begin(1)
	k.Put([]byte(source))
}

// TestSourcesWithOneHashAreTwo: a hash only says where to look. What is there is decided by the
// source.
func TestSourcesWithOneHashAreTwo(t *testing.T) {
	k := &Keys{}
	k.Use(t)
	k.write("a source of one")
	hashed := k.Find()
	k.Encode(&span.Key{})
	one := k.hash
	k.write("a source of two") // which begins alike
	if hashed != nil || k.Find() != nil {
		t.Error("something is known")
	}
	k.hash, one = one, k.hash
	k.Keep() // in the slot of the other one, with its hash
	k.write("a source of one")
	if k.Find() != nil {
		t.Error("a key is found by the source of another one")
	}
	if k.hash == one {
		t.Error("they have one hash")
	}
}

// TestKeysAreBounded: whoever makes up sources makes them hold no more than they may, and what is
// too long is not remembered.
func TestKeysAreBounded(t *testing.T) {
	k := &Keys{}
	k.Use(t)
	for i := range 40 * pairs {
		k.write(fmt.Sprint(strings.Repeat("s", i%(MaxSource-16)), i))
		k.Find()
		k.Encode(&span.Key{Resource: strings.Repeat("m", i%maxText)})
		k.Keep()
	}
	held, used := 0, 0
	for i := range k.pairs {
		for _, s := range k.pairs[i] {
			if s.source > 0 {
				used++
			}
			held += cap(s.text) + slotBytes
		}
	}
	if used < pairs || held > KeysBytes {
		t.Errorf("%d slots of %d are used, with %d bytes of %d", used, 2*pairs, held, KeysBytes)
	}
}

// TestTheOlderOfAPairGivesWay: two sources that share a pair are both known, and a third takes the place of
// the one that was made first.
func TestTheOlderOfAPairGivesWay(t *testing.T) {
	k := &Keys{}
	k.Use(t)
	var shared []string
	for i := 0; len(shared) < 3; i++ {
		source := fmt.Sprint("source ", i)
		if k.write(source); k.Find() == nil && k.hash%pairs == 0 {
			shared = append(shared, source)
		}
	}
	isKnown := func(source string) bool {
		k.write(source)
		key := k.Find()
		return key != nil && string(key) == string(wire.AppendKey(nil, &span.Key{Resource: source}))
	}
	for i, source := range shared {
		isKnown(source)
		k.Encode(&span.Key{Resource: source})
		k.Keep()
		for earlier := range i + 1 {
			if want := earlier > i-2; isKnown(shared[earlier]) != want {
				t.Errorf("once %d are kept, %d is known: %t", i+1, earlier, !want)
			}
		}
	}
}

// TestNothingIsAllocatedForWhatIsKnown.
func TestNothingIsAllocatedForWhatIsKnown(t *testing.T) {
	k := &Keys{}
	k.Use(t)
	k.write("source")
	k.Find()
	k.Encode(&span.Key{})
	k.Keep()
	source := "source"
	if n := testing.AllocsPerRun(100, func() {
		if k.write(source); k.Find() == nil {
			t.Fatal("not found")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
