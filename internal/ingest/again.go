package ingest

// A key is remembered at first sight while a table is small, or if it lost no label, for
// a tracer that spells its keys one way has no more of those than there are aggregates
// (and one that does not fills its own table). Another is only when it comes again: a
// scan neither grows the table nor pushes it out of the processor's cache, and a number
// that is defined again for each use costs no memory each.

const (
	// fewKeys is how many keys are remembered whatever they are.
	fewKeys = 256
	// allMarks is how many keys can be told to come again: a mark of 16 bits each, of
	// which a new key takes the place of an old one.
	allMarks   = 8192
	marksBytes = 2 * allMarks
)

// again says whether a key of that hash came before, and notes that it came. It is
// wrong of one in 65,536 that did not, and of those whose mark another took since. Where
// there is no room for marks, every key might have come before.
func (k *keys) again(hash uint64) bool {
	if len(k.known) < fewKeys {
		return true
	}
	if k.marks == nil && !k.takeMarks() {
		return true
	}
	at, mark := &k.marks[hash>>32%allMarks], uint16(hash>>48)
	if *at == mark {
		return true
	}
	// Only each second takes another's place, at random: two keys that come in turns
	// would else push each other out for ever.
	if k.dice = k.dice*6364136223846793005 + 1442695040888963407; *at == 0 || k.dice>>63 == 0 {
		*at = mark
	}
	return false
}

// In a flood no key is found, and each loses a label to a budget: after so many only each
// sixteenth is looked for, until that is not so. A look is a tenth of what a key costs then.
const (
	floodAfter = 256
	floodLooks = 16
)

// isWorthLooking says whether a key that came is to be looked for.
func (k *keys) isWorthLooking() bool {
	k.missed++
	return !k.isFlooded() || k.missed%floodLooks == 0
}

func (k *keys) isFlooded() bool { return k.missed > floodAfter }

// takeMarks takes none where something found no room since the last sweep.
func (k *keys) takeMarks() bool {
	if k.full || !k.take(marksBytes, keyCached) {
		return false
	}
	k.marks = make([]uint16, allMarks)
	return true
}

// giveMarks lets them go, and takes none again before the next sweep.
func (k *keys) giveMarks() {
	k.share.resize(k.bytes, k.bytes-marksBytes)
	k.bytes -= marksBytes
	k.marks, k.full = nil, true
}

// recycle makes a number stand for a key that is not known, in the place of the key
// that it stood for, if that one came once and no other number stands for it. It
// reports false where that is not so, or the place is too small.
func (k *keys) recycle(number uint32, raw []byte, hash uint64) bool {
	index := k.numbered(number)
	if index == none || !k.once[index] {
		return false
	}
	known := &k.known[index]
	if known.pins != 1 || len(raw) > cap(known.raw) || k.again(hash) {
		return false
	}
	k.remove(index)
	*known = knownKey{raw: append(known.raw[:0], raw...), hash: hash, pins: 1}
	k.insert(index)
	return true
}

// remove takes a key's place out of the table, and lets those that stand behind it for
// want of their own place move up.
func (k *keys) remove(index int) {
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
