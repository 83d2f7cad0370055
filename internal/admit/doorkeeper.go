package admit

// doorkeeper tells keys that come again from those that come once: a key that lost labels
// to a budget is put into the table only at its second sight, so that a flood neither
// grows the table nor pushes keys out of the processor's cache. It remembers 16 bits of a
// hash, so it mistakes few keys that come once, and forgets a key when two newer ones have
// taken its set.
type doorkeeper struct {
	sets *[doorkeeperSets][2]uint16 // nil until the first key
}

const (
	doorkeeperSets  = 1 << 11
	doorkeeperBytes = doorkeeperSets * 2 * 2
)

// hasSeen says whether a key of that hash came before, and notes that it came.
func (d *doorkeeper) hasSeen(hash uint64) bool {
	if d.sets == nil {
		d.sets = new([doorkeeperSets][2]uint16)
	}
	set, mark := &d.sets[hash>>32%doorkeeperSets], uint16(hash>>48)|1 // 0 is none
	if set[0] == mark || set[1] == mark {
		return true
	}
	set[0], set[1] = mark, set[0]
	return false
}
