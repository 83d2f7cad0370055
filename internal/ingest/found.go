package ingest

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// blockLen is how many snapshots are read before they are resolved: as few as fit the
// processor's first cache with all else.
const blockLen = 64

// block is the scratch of snapshots that are resolved together.
type block struct {
	read [blockLen]wire.Common
	found
}

// found is what their keys are.
type found struct {
	ids       [blockLen]aggregate.KeyID
	hashes    [blockLen]uint32
	lost      [blockLen]aggregate.Collapsed
	collapsed aggregate.Collapsed // by any
	indexes   [blockLen]uint32    // of a key that was followed
}

// put notes what a snapshot's key is. Whoever does that in a loop keeps the sum of what
// collapsed in a register.
func (f *found) put(i int, to *resolved) {
	at := uint(i) % blockLen
	f.ids[at], f.hashes[at], f.lost[at] = to.id, to.hash, to.collapsed
}

// find finds the keys of some snapshots.
func (a *admission) find(cycle *aggregate.Cycle, walker *wire.SpansWalker, read []wire.Common) error {
	to := &a.block.found
	to.collapsed = 0
	for i := 0; i < len(read); {
		if i = a.keys.byNumber(read, to, a.interval, i); i == len(read) {
			break
		}
		if i = a.keys.follow(walker, read, to, a.interval, i); i == len(read) {
			break
		}
		for again := true; again; again = i < len(read) && read[i].KeyLen != 0 && a.keys.isFlooded() {
			if i = a.fitting(walker, read, to, i); i == len(read) {
				break
			}
			c, key := &read[i], []byte(nil)
			if c.KeyLen != 0 {
				key = walker.Bytes(c)
			}
			is, err := a.lookUp(cycle, key, c.Key)
			if err != nil {
				return err
			}
			to.put(i, is)
			to.collapsed |= is.collapsed
			i++
		}
	}
	if to.collapsed != 0 {
		for _, lost := range to.lost[:len(read)] {
			if lost != 0 {
				a.batch.collapse(lost)
			}
		}
	}
	return nil
}

// byNumber finds the keys of snapshots from one on that have numbers, up to the first
// about which there is more to say, and returns where that is.
func (k *keys) byNumber(read []wire.Common, to *found, interval uint64, i int) int {
	known, numbers, collapsed := k.known, k.numbers, to.collapsed
	for ; uint(i) < uint(len(read)); i++ {
		c := &read[i]
		if c.KeyLen != 0 || uint64(c.Key) >= uint64(len(numbers)) {
			break
		}
		index := uint64(numbers[c.Key]) - 1
		if index >= uint64(len(known)) || known[index].interval != interval {
			break
		}
		is := &known[index].resolved
		to.put(i, is)
		collapsed |= is.collapsed
	}
	to.collapsed = collapsed
	return i
}

// fitting finds the keys of a flood from one on that are like one before, up to the first
// that is not, or is to be looked for, and returns where that is.
func (a *admission) fitting(walker *wire.SpansWalker, read []wire.Common, to *found, from int) int {
	read = read[:min(len(read), from+a.keys.unlooked())]
	i, collapsed := from, to.collapsed
	for ; i < len(read) && read[i].KeyLen != 0; i++ {
		fitted, ok := a.glance.Fits(walker.Bytes(&read[i]))
		if !ok {
			break
		}
		at := uint(i) % blockLen
		to.ids[at], to.hashes[at], to.lost[at] = fitted.ID, fitted.Hash, fitted.Collapsed
		collapsed |= fitted.Collapsed
	}
	to.collapsed = collapsed
	a.keys.missed += uint(i - from)
	a.misses.decoded += uint64(i - from)
	return i
}
