package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
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
	for i := range 20 * slots {
		k.write(fmt.Sprint(strings.Repeat("s", i%(MaxSource-16)), i))
		k.Find()
		k.Encode(&span.Key{Resource: strings.Repeat("m", i%maxText)})
		k.Keep()
	}
	held, used := 0, 0
	for i := range k.slots {
		if s := &k.slots[i]; s.source > 0 {
			used++
		}
		held += cap(k.slots[i].text) + slotBytes
	}
	if used < slots/2 || held > KeysBytes {
		t.Errorf("%d slots of %d are used, with %d bytes of %d", used, slots, held, KeysBytes)
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
