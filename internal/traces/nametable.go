package traces

// nameTable finds the number of a name. It is asked for every field and every tag of
// every span, and most names are nobody's: so it is an open-addressing table that hashes
// few bytes of a name, and is so sparse that most of the names that it does not hold meet
// an empty slot. It never changes.
type nameTable struct {
	names []string // by number; number 0 stands for every other name
	slots [1 << nameSlotBits]uint8
}

// nameSlotBits makes room for sixteen times as many names as there can be.
const nameSlotBits = 12

// newNameTable makes a table of at most 256 names. The first one is not looked up.
func newNameTable(names []string) *nameTable {
	t := &nameTable{names: names}
	for number := 1; number < len(names); number++ {
		if names[number] == "" {
			continue
		}
		at := hash([]byte(names[number]))
		for t.slots[at] != 0 {
			at = (at + 1) % uint64(len(t.slots))
		}
		t.slots[at] = uint8(number)
	}
	return t
}

// find returns a name's number, 0 where it is not in the table.
func (t *nameTable) find(name []byte) uint8 {
	for at := hash(name); ; at = (at + 1) % uint64(len(t.slots)) {
		if number := t.slots[at]; number == 0 || t.names[number] == string(name) {
			return number
		}
	}
}

// hash mixes the length of a name with three of its bytes. It takes no branch on the
// length, which nobody can foretell.
func hash(name []byte) uint64 {
	n := len(name)
	if n == 0 {
		return 0
	}
	some := uint64(n) | uint64(name[0])<<8 | uint64(name[n/2])<<16 | uint64(name[n-1])<<24
	return some * 0x9e3779b97f4a7c15 >> (64 - nameSlotBits)
}
