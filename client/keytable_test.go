package client

import (
	"fmt"
	"math"
	"testing"
)

// TestKeyTable compares it with a map, through many generations.
func TestKeyTable(t *testing.T) {
	table := &keyTable{generation: math.MaxUint32 - 3}
	for generation := range 8 {
		table.reset()
		var definitions []byte
		model := map[string]uint16{}
		for i := range 3 * maxKeys {
			key := fmt.Appendf(nil, "key %d", i*7%(maxKeys-generation))
			slot, tag, found := table.find(key, definitions)
			number, known := model[string(key)]
			if found != known || found && slot.number != number {
				t.Fatalf("generation %d: found %q %v, want %v", generation, key, found, known)
			}
			if !found {
				number = uint16(len(model))
				model[string(key)] = number
				*slot = keySlot{tag: tag, offset: uint16(len(definitions)), size: uint16(len(key)), number: number}
				definitions = append(definitions, key...)
			}
		}
	}
}
