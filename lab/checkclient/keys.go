package checkclient

import (
	"hash/maphash"
)

// Limits on the hashes of keys that a session keeps.
const (
	maxWhole  = 8192 // keys sent in full
	maxScopes = 64   // labels and tag keys whose distinct values are counted
)

// seed is shared by all connections, because their spans are compared.
var seed = maphash.MakeSeed()

// keys records the keys that a connection has sent.
type keys struct {
	numbers  map[uint32]uint64
	complete map[uint64]struct{}
	values   map[uint64]struct{} // hashes of distinct values, of all scopes
	used     map[string]int      // number of distinct values per scope
}

func newKeys() keys {
	return keys{
		map[uint32]uint64{},
		map[uint64]struct{}{},
		map[uint64]struct{}{},
		map[string]int{},
	}
}

// define assigns a number to a key, and reports whether the number had the same key before.
func (k *keys) define(number uint32, raw []byte) (redefined bool) {
	hash := maphash.Bytes(seed, raw)
	earlier, known := k.numbers[number]
	k.numbers[number] = hash
	return known && earlier == hash
}

// met records a key that was sent in full, and reports whether it had been sent before.
func (k *keys) met(raw []byte) bool {
	hash := maphash.Bytes(seed, raw)
	_, known := k.complete[hash]
	if len(k.complete) < maxWhole {
		k.complete[hash] = struct{}{}
	}
	return known
}

// exceeds records a value of a label or of a tag key, and reports whether it is the first one
// over the budget.
func (k *keys) exceeds(scope, value string, budget int) bool {
	hash := maphash.String(seed, scope+"\x00"+value)
	used, known := k.used[scope]
	if _, met := k.values[hash]; met || used > budget || !known && len(k.used) == maxScopes {
		return false
	}
	k.values[hash], k.used[scope] = struct{}{}, used+1
	return used == budget
}
