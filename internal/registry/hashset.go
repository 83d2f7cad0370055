package registry

// hashSet is a set of hashes that does not change any more once it is read, so that any
// number of goroutines may: open addressing, linear probing, at most half full. The lowest
// bit of each says of it whether it repeated, so 63 bits tell it from others.
type hashSet []uint64

// setBytes is what a hash costs at most.
const setBytes = 4 * 8

func newHashSet(hashes int) hashSet {
	slots := 2
	for slots < 2*hashes {
		slots *= 2
	}
	return make(hashSet, slots)
}

func (s hashSet) put(hash uint64, isRepeated bool) {
	hash |= 1
	at := s.home(hash)
	for s[at] != 0 && s[at]|1 != hash {
		at = (at + 1) & (len(s) - 1)
	}
	if !isRepeated && hash != 1 { // 0 is an empty slot
		hash--
	}
	s[at] = hash
}

// find is what the set says of a hash: that it repeated, or that it came, or nothing.
func (s hashSet) find(hash uint64) sight {
	if len(s) == 0 {
		return firstSight
	}
	hash |= 1
	for at := s.home(hash); s[at] != 0; at = (at + 1) & (len(s) - 1) {
		switch s[at] {
		case hash:
			return repeated
		case hash - 1:
			return cameBefore
		}
	}
	return firstSight
}

func (s hashSet) home(hash uint64) int { return int(hash * spread >> 32 & uint64(len(s)-1)) }
