package registry

import "sync/atomic"

// places is an open-addressed table from hashes to small numbers: linear probing,
// at most half full, no pointers. What a number stands for, its owner knows, and
// compares. It is emptied by counting its generation on, so a reset costs no
// more than a small part of it, however large a flood has made it.
//
// One at a time writes it, under its owner's lock; anybody may search without. A
// number is put where it is found by one atomic store, behind everything that its
// owner wrote of it, and a table that has grown is published whole. So who finds a
// number finds what it stands for; who does not, may be too early, and asks again
// under the lock if it matters.
type places struct {
	slots      atomic.Pointer[[]uint64] // each a place
	sieve      sieve                    // of the hashes that are there
	generation uint64
	used       int
}

// A place is its number, the generation that it is of, and the uppermost bits of the
// hash, so that few searches end in vain at what a number stands for. The lowest bits
// say where to look.
const (
	placeGeneration = 1<<16 - 1
	tagShift        = 48
	generationShift = 32

	placeBytes = 8 + 8/sievePlaces // with its part of the sieve
)

// leastPlaces is a power of two, as every size of the table.
const leastPlaces = 64

func (p *places) init() {
	slots := make([]uint64, leastPlaces)
	p.slots.Store(&slots)
	p.sieve.init()
	p.generation, p.used = 1, 0
}

// begin is where a search for a hash begins: its slots, and what a place looks like
// that has such a hash. Each found says where the next one may be. (A struct of these
// is built on the stack by narrow stores and copied by wide loads, which wait for them:
// half of what a search took.)
func (p *places) begin(hash uint64) (slots []uint64, want uint64, at uint32) {
	return *p.slots.Load(), p.place(hash, 0), uint32(hash)
}

func (p *places) place(hash uint64, number uint32) uint64 {
	return hash>>tagShift<<tagShift | p.generation<<generationShift | uint64(number)
}

// found is the next number whose hash looks like the one that is looked for, and where
// to go on. There is none behind an empty place.
func found(slots []uint64, want uint64, at uint32) (number, next uint32, ok bool) {
	for {
		place := atomic.LoadUint64(&slots[at&uint32(len(slots)-1)]) ^ want
		at++
		if place>>generationShift == 0 {
			return uint32(place), at, true
		}
		if place>>generationShift&placeGeneration != 0 {
			return 0, at, false
		}
	}
}

// spare is what the table takes, used or not.
func (p *places) spare() int { return 8*len(*p.slots.Load()) + p.sieve.spare() }

// put adds a number. hashOf tells the hashes of those that are there already, in
// case they must move to a larger table.
func (p *places) put(hash uint64, number uint32, hashOf func(number uint32) uint64) {
	p.used++
	slots := *p.slots.Load()
	if 2*p.used > len(slots) {
		larger, sieve := make([]uint64, 2*len(slots)), newSieve(2*len(slots))
		for _, place := range slots {
			if place>>generationShift&placeGeneration == p.generation {
				known := hashOf(uint32(place))
				note(sieve, known)
				p.insert(larger, known, uint32(place))
			}
		}
		p.sieve.show(sieve)
		p.slots.Store(&larger)
		slots = larger
	}
	note(p.sieve.view(), hash)
	p.insert(slots, hash, number)
}

func (p *places) insert(slots []uint64, hash uint64, number uint32) {
	mask := uint32(len(slots) - 1)
	at := uint32(hash) & mask
	for slots[at]>>generationShift&placeGeneration == p.generation {
		at = (at + 1) & mask
	}
	atomic.StoreUint64(&slots[at], p.place(hash, number))
}

// reset empties the table, while nobody searches. An empty slot is of generation 0,
// which no table has.
func (p *places) reset() {
	p.used = 0
	p.sieve.reset()
	p.generation++
	if p.generation > placeGeneration {
		clear(*p.slots.Load())
		p.generation = 1
	}
}
