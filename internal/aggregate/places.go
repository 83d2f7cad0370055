package aggregate

import "unsafe"

// places is an open-addressed table from hashes to small numbers: linear probing,
// at most half full, no pointers. What a number stands for, its owner knows, and
// compares. It is emptied by counting its generation on, so a reset costs nothing,
// however large a flood has made it.
type places struct {
	slots      []place
	generation uint32
	used       int
}

type place struct {
	generation uint32 // free in every other one
	tag        uint32 // the hash's upper half: the lower one says where to look
	number     uint32
}

// leastPlaces is a power of two, as every size of the table.
const leastPlaces = 64

func newPlaces() places { return places{slots: make([]place, leastPlaces), generation: 1} }

// search goes through the numbers whose hash looks like the one it is for.
type search struct{ at, tag uint32 }

func (p *places) search(hash uint64) search { return search{at: uint32(hash), tag: uint32(hash >> 32)} }

// next is the next of them.
func (p *places) next(s *search) (number uint32, ok bool) {
	mask := uint32(len(p.slots) - 1)
	for {
		slot := &p.slots[s.at&mask]
		if slot.generation != p.generation {
			return 0, false
		}
		s.at++
		if slot.tag == s.tag {
			return slot.number, true
		}
	}
}

// spare is what the table takes, used or not.
func (p *places) spare() int { return len(p.slots) * int(unsafe.Sizeof(place{})) }

// put adds a number. hashOf tells the hashes of those that are there already, in
// case they must move to a larger table.
func (p *places) put(hash uint64, number uint32, hashOf func(number uint32) uint64) {
	p.used++
	if 2*p.used > len(p.slots) {
		old := p.slots
		p.slots = make([]place, 2*len(old))
		for _, slot := range old {
			if slot.generation == p.generation {
				p.insert(hashOf(slot.number), slot.number)
			}
		}
	}
	p.insert(hash, number)
}

func (p *places) insert(hash uint64, number uint32) {
	mask := uint32(len(p.slots) - 1)
	at := uint32(hash) & mask
	for p.slots[at].generation == p.generation {
		at = (at + 1) & mask
	}
	p.slots[at] = place{generation: p.generation, tag: uint32(hash >> 32), number: number}
}

// reset empties the table. The zero slot is of generation 0, which no table has.
func (p *places) reset() {
	p.used = 0
	p.generation++
	if p.generation == 0 {
		clear(p.slots)
		p.generation = 1
	}
}
