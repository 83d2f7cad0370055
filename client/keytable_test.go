package client

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestKeyTable compares it with a map, through many generations.
func TestKeyTable(t *testing.T) {
	table := &keyTable{}
	for generation := range 8 {
		clear(table[:])
		var definitions []byte
		model := map[string]uint16{}
		for i := range 3 * maxKeys {
			key := fmt.Appendf(nil, "key %d", i*7%(maxKeys-generation))
			slot, hash, found := table.find(key, definitions)
			number, known := model[string(key)]
			if found != known || found && slot.number != number {
				t.Fatalf("generation %d: found %q %v, want %v", generation, key, found, known)
			}
			if !found {
				number = uint16(len(model))
				model[string(key)] = number
				*slot = keySlot{
					hash: hash, offset: uint16(len(definitions)), size: uint16(len(key)),
					number: number,
				}
				definitions = append(definitions, key...)
			}
		}
	}
}

// TestKeysWithEqualHashesStayApart: a hash only says where to look. The key's bytes decide what is
// there.
func TestKeysWithEqualHashesStayApart(t *testing.T) {
	table := &keyTable{}
	definitions := []byte("onetwo")
	slot, hash, _ := table.find([]byte("two"), definitions)
	*slot = keySlot{hash: hash, offset: 0, size: 3, number: 1}
	slot, hash, found := table.find([]byte("two"), definitions)
	if found {
		t.Fatal("a key is found as another with its hash")
	}
	*slot = keySlot{hash: hash, offset: 3, size: 3, number: 2}
	if slot, _, found = table.find([]byte("two"), definitions); !found || slot.number != 2 {
		t.Errorf("behind another with its hash a key is found %t, as number %d", found, slot.number)
	}
}

// TestTheKeysOfABufferFitEveryDaemon: the keys that a buffer may define cost less than the least
// that a daemon announces, so that no number of a buffer is ever without its key.
func TestTheKeysOfABufferFitEveryDaemon(t *testing.T) {
	most := 0
	for length := 1; length <= defineRoom; length++ {
		keys := min(maxKeys, defineRoom/length)
		most = max(most, keys*wire.KeyCost(length))
	}
	if most > maxKeyCost || maxKeyCost > wire.MinMaxKeyBytes {
		t.Errorf("the keys of a buffer may cost %d; %d is asked of a daemon, %d announced at least", most,
			maxKeyCost, wire.MinMaxKeyBytes)
	}
}
