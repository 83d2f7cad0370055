package registry

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAHashTableFindsWhatAMapFinds does random things to a table and to a map, with
// hashes that collide.
func TestAHashTableFindsWhatAMapFinds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	var hashes []uint64
	any := func() uint64 { return uint64(rnd.IntN(4))<<hashHalf | uint64(rnd.IntN(64)) }
	for range 300 {
		hashes = nil
		table := hashTable{hashOf: func(number uint32) uint64 { return hashes[number] }}
		table.init()
		numbers := map[uint64][]uint32{}
		for number := range uint32(rnd.IntN(400)) {
			hash := any()
			hashes = append(hashes, hash)
			table.put(hash, number)
			numbers[hash] = append(numbers[hash], number)
		}
		for range 100 {
			hash := any()
			all := slices.Collect(table.candidates(hash))
			for _, number := range numbers[hash] {
				if !slices.Contains(all, number) {
					t.Fatalf("%d of hash %x is not found among %v", number, hash, all)
				}
			}
		}
	}
}
