package admit

// numbered returns the index of the key that a number stands for, or none.
func (k *keyTable) numbered(number uint32) int {
	if uint64(number) >= uint64(len(k.numbers)) || k.numbers[number] == unlabelled {
		return none
	}
	return int(k.numbers[number]) - 1
}

// isUnlabelled reports whether a number without a key was defined. If the list of numbers
// itself found no room, all beyond it are taken for such.
func (k *keyTable) isUnlabelled(number uint32) bool {
	if uint64(number) >= uint64(len(k.numbers)) {
		return k.cutShort
	}
	return k.numbers[number] == unlabelled
}

// disown makes a number unlabelled.
func (k *keyTable) disown(number uint32) {
	if !k.growTo(number) {
		k.cutShort = true
		return
	}
	k.unpin(number)
	k.numbers[number] = unlabelled
}

// assign makes a number stand for a key that find has found, or has not. It reports false
// where there is no room.
func (k *keyTable) assign(number uint32, raw []byte, index int, hash uint64) bool {
	if index == none {
		if k.replace(number, raw, hash) {
			return true
		}
		if index = k.add(raw, hash, keyNumbered); index == none {
			return false
		}
	}
	if !k.growTo(number) {
		return false
	}
	k.pin(number, index)
	return true
}

// replace makes a number stand for a key that is not known in the place of the key that
// it stood for, if no other number stands for that one, and the place is large enough. So
// a tracer that defines a number anew for each of its spans takes no memory for that.
func (k *keyTable) replace(number uint32, raw []byte, hash uint64) bool {
	index := k.numbered(number)
	if index == none || k.known[index].pins > 1 || len(raw) > cap(k.known[index].raw) {
		return false
	}
	k.remove(index)
	k.known[index] = knownKey{raw: append(k.known[index].raw[:0], raw...), hash: hash, pins: 1}
	k.insert(index)
	return true
}

// remove takes a key's place out of the table, and lets those that stand behind it for
// want of their own place move up.
func (k *keyTable) remove(index int) {
	mask := uint32(len(k.slots) - 1)
	hole := uint32(k.known[index].hash) & mask
	for k.slots[hole].key != uint32(index)+1 {
		hole = (hole + 1) & mask
	}
	for at := (hole + 1) & mask; k.slots[at].key != 0; at = (at + 1) & mask {
		home := uint32(k.known[k.slots[at].key-1].hash) & mask
		if (at-home)&mask >= (at-hole)&mask {
			k.slots[hole] = k.slots[at]
			hole = at
		}
	}
	k.slots[hole] = keySlot{}
}

// growTo makes room for a number and some that may follow it. Which of them were defined while
// there was no room is not known, so all are taken for such.
func (k *keyTable) growTo(number uint32) bool {
	have := len(k.numbers)
	if int64(number) < int64(have) {
		return true
	}
	want := max(int(number)+1, min(max(leastKeys, 2*have), k.maxKeys))
	cost := numberBytes * (want - have)
	if !k.take(cost, keyNumbered) {
		k.full = true
		return false
	}
	k.pinned += cost
	k.numbers = append(make([]uint32, 0, want), k.numbers...)[:want]
	for i := have; k.cutShort && i < want; i++ {
		k.numbers[i] = unlabelled
	}
	return true
}

// pin makes a number that there is room for stand for a known key.
func (k *keyTable) pin(number uint32, index int) {
	if known := &k.known[index]; known.pins == 0 {
		k.pinned += known.cost()
	}
	k.known[index].pins++
	k.unpin(number)
	k.numbers[number] = uint32(index) + 1
}

// unpin takes the number from the key that it stands for, if it does for any.
func (k *keyTable) unpin(number uint32) {
	if earlier := k.numbered(number); earlier != none {
		known := &k.known[earlier]
		if known.pins--; known.pins == 0 {
			k.pinned -= known.cost()
		}
	}
}

// worthSweeping says whether a sweep down to the numbered keys would free a good
// part of the table. Where it would not, it is not worth its cost, which is that
// of the whole table: a tracer could ask for one with each key.
func (k *keyTable) worthSweeping() bool {
	return k.pinned < k.maxBytes-k.maxBytes/8 && k.share.held-k.pinned > k.share.held/8
}
