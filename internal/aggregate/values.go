package aggregate

import (
	"hash/maphash"
	"strings"
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
// is there already is found without being copied; only one that is new is.
type values struct {
	places places
	list   []value // by valueID
}

type value struct {
	text      string
	hash      uint64
	scope     scope
	name      int32 // of a tag's name, its index among the names
	isBlocked bool  // a tag whose value is span.Blocked
}

func newValues() values {
	v := values{places: newPlaces(), list: make([]value, firstValue)}
	v.list[blocked] = value{text: span.Blocked, isBlocked: true}
	return v
}

func hashIn(s scope, text string) uint64 {
	return maphash.String(seed, text) ^ uint64(s)*0x9e3779b97f4a7c15
}

func (v *values) find(s scope, hash uint64, text string) (valueID, bool) {
	search := v.places.search(hash)
	for {
		id, more := v.places.next(&search)
		if !more {
			return absent, false
		}
		if known := &v.list[id]; known.scope == s && known.text == text {
			return id, true
		}
	}
}

// add numbers a label that find did not find.
func (v *values) add(s scope, hash uint64, text string) valueID {
	id := valueID(len(v.list))
	v.list = append(v.list, value{text: strings.Clone(text), hash: hash, scope: s})
	v.places.put(hash, id, func(id uint32) uint64 { return v.list[id].hash })
	return id
}

// valueBytes is what a value takes, with the room that the list has for more, and
// its places in a table that has just grown.
func valueBytes(text string) int {
	return len(text) + int(unsafe.Sizeof(value{}))*5/4 + 4*int(unsafe.Sizeof(place{}))
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
