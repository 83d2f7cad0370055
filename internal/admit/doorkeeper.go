package admit

// doorkeeper tells keys that come again from those that come once: a key that lost labels
// to a budget is put into the table only at its second sight, so that a flood neither
// grows the table nor pushes keys out of the processor's cache. It remembers 16 bits of a
// hash, so it mistakes few keys that come once. A new key takes an older one's place only
// each second time, at random, so that no keys that come in turns push each other out for
// ever.
type doorkeeper struct {
	sets *[doorkeeperSets][2]uint16 // nil until the first key
	dice uint64
}

const (
	doorkeeperSets  = 1 << 11
	doorkeeperBytes = doorkeeperSets * 2 * 2
)

// hasSeen says whether a key of that hash was noted before.
func (d *doorkeeper) hasSeen(hash uint64) bool {
	if d.sets == nil {
		return false
	}
	set, mark := d.place(hash)
	return set[0] == mark || set[1] == mark
}

func (d *doorkeeper) place(hash uint64) (set *[2]uint16, mark uint16) {
	return &d.sets[hash>>32%doorkeeperSets], uint16(hash>>48) | 1 // 0 is none
}

// note notes that a key came that was not seen.
func (d *doorkeeper) note(hash uint64) {
	if d.sets == nil {
		d.sets = new([doorkeeperSets][2]uint16)
	}
	switch set, mark := d.place(hash); {
	case set[0] == 0:
		set[0] = mark
	case set[1] == 0:
		set[1] = mark
	default:
		d.dice = d.dice*6364136223846793005 + 1442695040888963407
		if d.dice>>63 == 0 {
			set[d.dice>>62&1] = mark
		}
	}
}
