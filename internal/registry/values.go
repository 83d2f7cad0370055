package registry

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// seed is one a process, so that nobody outside can choose labels that collide.
var seed = maphash.MakeSeed()

// valueID is the number of a distinct label in one interval. Two labels of one
// scope are equal exactly when their numbers are.
type valueID = uint32

const (
	absent  valueID = iota // of an empty label, in every scope
	blocked                // of span.Blocked, in every scope
	firstValue
)

// scope is where a label counts as distinct: a field of an origin.
type scope uint32

// A list of tags is told apart twice: by its whole tags, and by their names.
const (
	scopePeerName       = scope(FieldWholeKey) + iota // of the tags in FieldPeerTag
	scopeAdditionalName                               // of those in FieldAdditionalTag
	scopes
)

func scopeOf(origin OriginID, f Field) scope { return scope(origin)*scopes + scope(f) }

// nameScopeOf is the scope of the names of a tag field's tags.
func nameScopeOf(origin OriginID, f Field) scope {
	return scope(origin)*scopes + scopePeerName + scope(f-FieldPeerTag)
}

// values are the distinct labels that the keys of one interval have. A label that
// is there already is found without being copied; only one that is new is. Like its
// places, it may be searched without the lock under which it is written.
type values struct {
	places places
	list   []value // by valueID
	shown  shown[value]
}

// value is not changed once it can be found, but for full.
type value struct {
	text      string
	hash      uint64
	scope     scope
	name      int32   // of a tag's name, its index among the names
	full      valueID // of a tag's name, once it is over its budget: what its tags become; atomic
	isBlocked bool    // a tag whose value is span.Blocked
}

func (v *values) init() {
	v.places.init()
	v.list = make([]value, firstValue)
	v.list[blocked] = value{text: span.Blocked, isBlocked: true}
	v.shown.update(v.list)
}

// hashIn is the hash of a label in a scope, of its hash.
func hashIn(s scope, hash uint64) uint64 { return hash ^ uint64(s)*0x9e3779b97f4a7c15 }

func hashOf(s scope, text string) uint64 {
	hash, _ := span.Look(text)
	return hashIn(s, hash)
}

func (v *values) find(s scope, hash uint64, text string) (valueID, bool) {
	if !passes(v.places.sieve.view(), hash) {
		return absent, false
	}
	return v.search(s, hash, text)
}

func (v *values) search(s scope, hash uint64, text string) (valueID, bool) {
	slots, want, at := v.places.begin(hash)
	for {
		id, next, more := found(slots, want, at)
		if !more {
			return absent, false
		}
		at = next
		if known := v.at(id); known.scope == s && known.text == text {
			return id, true
		}
	}
}

// at is the value of a number that was found.
func (v *values) at(id valueID) *value { return &v.shown.list()[id] }

// add numbers a label that find did not find.
func (v *values) add(added value) valueID {
	id := valueID(len(v.list))
	added.text = strings.Clone(added.text)
	v.list = append(v.list, added)
	v.shown.update(v.list)
	v.places.put(added.hash, id, func(id uint32) uint64 { return v.list[id].hash })
	return id
}

// fill notes what the tags of a name become from here on.
func (v *values) fill(name, becomes valueID) { atomic.StoreUint32(&v.list[name].full, becomes) }

// becomes is what fill noted, or absent.
func (v *value) becomes() valueID { return atomic.LoadUint32(&v.full) }

// valueBytes is what a value takes, with the room that the list has for more, and
// its places in a table that has just grown.
func valueBytes(text string) int {
	return len(text) + int(unsafe.Sizeof(value{}))*5/4 + 4*placeBytes
}

// spare is what the memory for values takes while there are none.
func (v *values) spare() int {
	return cap(v.list)*int(unsafe.Sizeof(value{})) + v.places.spare()
}

func (v *values) reset() {
	v.places.reset()

	clear(v.list[firstValue:]) // lets go of the texts; the room stays
	v.list = v.list[:firstValue]
}
