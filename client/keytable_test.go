package client

import (
	"fmt"
	"testing"
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
				*slot = keySlot{hash: hash, offset: uint16(len(definitions)), size: uint16(len(key)), number: number}
				definitions = append(definitions, key...)
			}
		}
	}
}
