package ingest

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
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
	ids       [blockLen]registry.KeyID
	hashes    [blockLen]uint32
	lost      [blockLen]registry.Collapsed
	collapsed registry.Collapsed // by any
	indexes   [blockLen]uint32   // of a key that was followed
}

// put notes what a snapshot's key is. Whoever does that in a loop keeps the sum of what
// collapsed in a register.
func (f *found) put(i int, to *resolved) {
	at := uint(i) % blockLen
	f.ids[at], f.hashes[at], f.lost[at] = to.id, to.hash, to.collapsed
}

// find finds the keys of some snapshots.
func (a *admission) find(cycle *aggregate.Cycle, walker *wire.SpansWalker, read []wire.Common) (err error) {
	to := &a.block.found
	to.collapsed = 0
	for i := 0; i < len(read) && err == nil; {
		if i = a.keys.byNumber(read, to, a.interval, i); i == len(read) {
			break
		}
		if i = a.keys.follow(walker, read, to, a.interval, i); i == len(read) {
			break
		}
		switch {
		case read[i].KeyLen == 0:
			i, err = a.findNumber(cycle, read, i)
		case a.keys.isFlooded():
			i, err = a.findFlood(cycle, walker, read, i)
		default:
			i, err = a.findAny(cycle, walker, read, i)
		}
	}
	if err == nil && to.collapsed != 0 {
		for _, lost := range to.lost[:len(read)] {
			if lost != 0 {
				a.batch.collapse(lost)
			}
		}
	}
	return err
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

// findNumber finds the key of one snapshot by a number about which there is more to say, and
// returns where the next is.
func (a *admission) findNumber(cycle *aggregate.Cycle, read []wire.Common, i int) (next int, err error) {
	is, err := a.lookUp(cycle, nil, read[i].Key)
	if err != nil {
		return i, err
	}
	a.block.found.put(i, is)
	a.block.found.collapsed |= is.collapsed
	return i + 1, nil
}

// findAny finds whole keys from one on that come in no order, until it is time for another
// guess, and returns where that is.
func (a *admission) findAny(cycle *aggregate.Cycle, walker *wire.SpansWalker, read []wire.Common, from int) (i int, err error) {
	to, k := &a.block.found, a.keys
	read = read[:min(len(read), from+max(1, -k.trust))]
	for i = from; i < len(read) && read[i].KeyLen != 0; i++ {
		raw := walker.Bytes(&read[i])
		index, hash := k.find(raw)
		if index == none {
			k.missed++
		}
		var is *resolved
		if index != none && k.known[index].interval == a.interval {
			k.came(index)
			is = &k.known[index].resolved
		} else if is, err = a.sought(cycle, raw, index, hash); err != nil {
			return i, err
		}
		to.put(i, is)
		to.collapsed |= is.collapsed
	}
	if k.trust < 0 {
		k.trust += i - from
	}
	return i, nil
}

// findFlood finds the keys of a flood from one on, and returns where it ends.
func (a *admission) findFlood(cycle *aggregate.Cycle, walker *wire.SpansWalker, read []wire.Common, i int) (end int, err error) {
	to := &a.block.found
	for i < len(read) && read[i].KeyLen != 0 && a.keys.isFlooded() {
		is, err := a.lookUp(cycle, walker.Bytes(&read[i]), 0)
		if err != nil {
			return i, err
		}
		to.put(i, is)
		to.collapsed |= is.collapsed
		i++
	}
	return i, nil
}
