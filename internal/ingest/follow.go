package ingest

import (
	"bytes"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// A guess that was wrong costs as much trust as three that were right gain: a wrong
// one takes a branch back, so guessing pays where it is right most of the time. Once
// trust is lost, trustAgain keys that come in no order pass before there is another guess.
const (
	trustMost  = 8
	trustWrong = 3
	trustAgain = 64
)

// follow finds the keys of snapshots from one on, up to the first that has none or is not
// the key that came after the one before when that came the last time, and returns where
// that is. Spans repeat in the order in which their code runs, and then neither a hash nor
// a probe is needed: the daemon's 127 ns a span became 107 with 64 keys in rotation, and
// 153 became 128 with 4096. Where they do not repeat, trust is soon lost, and there is one
// guess in 64 keys.
func (k *keys) follow(walker *wire.SpansWalker, read []wire.Common, to *found, interval uint64, from int) int {
	if k.trust < 0 {
		return from
	}
	guessed := k.guess(read, to, interval, from)
	right := from + k.compare(walker, read[from:guessed], to.indexes[from:guessed])
	if right > from {
		k.last, k.trust = to.indexes[right-1], min(k.trust+right-from, trustMost)
	}
	if right < len(read) && read[right].KeyLen != 0 {
		if k.trust -= trustWrong; k.trust < 0 {
			k.trust = -trustAgain
		}
	}
	return right
}

// guess guesses as far as the keys are as long as they should be.
func (k *keys) guess(read []wire.Common, to *found, interval uint64, i int) int {
	known, last, collapsed := k.known, k.last, to.collapsed
	for ; uint(i) < uint(len(read)); i++ {
		if uint(last) >= uint(len(known)) {
			break
		}
		next := known[last].next
		if uint(next) >= uint(len(known)) {
			break
		}
		key := &known[next]
		if len(key.raw) != int(read[i].KeyLen) || key.interval != interval {
			break
		}
		to.put(i, &key.resolved)
		to.indexes[uint(i)%blockLen] = next
		collapsed |= key.collapsed
		last = next
	}
	to.collapsed = collapsed
	return i
}

// compare tells how many guesses are right, up to the first that is not.
func (k *keys) compare(walker *wire.SpansWalker, read []wire.Common, indexes []uint32) int {
	known := k.known
	for i, index := range indexes {
		if !bytes.Equal(known[index].raw, walker.Bytes(&read[i])) {
			return i
		}
	}
	return len(indexes)
}

// came notes that a key came after the last one.
func (k *keys) came(index int) {
	if int(k.last) < len(k.known) {
		k.known[k.last].next = uint32(index)
	}
	k.last = uint32(index)
	k.missed = 0
}
