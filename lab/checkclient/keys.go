package checkclient

import (
	"hash/maphash"
)

// What a session keeps of keys, as hashes.
const (
	maxWhole  = 8192 // keys that came whole
	maxScopes = 64   // labels and tag keys whose distinct values are counted
)

// seed is one for all connections, whose spans are compared.
var seed = maphash.MakeSeed()

// keys are those that a connection has sent.
type keys struct {
	numbers map[uint32]uint64
	whole   map[uint64]struct{}
	values  map[uint64]struct{} // distinct ones of all scopes
	used    map[string]int      // by scope
}

func newKeys() keys {
	return keys{
		map[uint32]uint64{},
		map[uint64]struct{}{},
		map[uint64]struct{}{},
		map[string]int{},
	}
}

// define makes a number stand for a key, and reports whether it did so before.
func (k *keys) define(number uint32, raw []byte) (again bool) {
	hash := maphash.Bytes(seed, raw)
	earlier, known := k.numbers[number]
	k.numbers[number] = hash
	return known && earlier == hash
}

// met notes a key that came whole, and reports whether it had come before.
func (k *keys) met(raw []byte) bool {
	hash := maphash.Bytes(seed, raw)
	_, known := k.whole[hash]
	if len(k.whole) < maxWhole {
		k.whole[hash] = struct{}{}
	}
	return known
}

// exceeds notes a value of a label or of a tag key, and reports whether it is the first
// one beyond the budget.
func (k *keys) exceeds(scope, value string, budget int) bool {
	hash := maphash.String(seed, scope+"\x00"+value)
	used, known := k.used[scope]
	if _, met := k.values[hash]; met || used > budget || !known && len(k.used) == maxScopes {
		return false
	}
	k.values[hash], k.used[scope] = struct{}{}, used+1
	return used == budget
}
