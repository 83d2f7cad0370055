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

// labelID is the number of a distinct text in one scope and interval.
type labelID = uint32

const (
	absentID  labelID = iota // of an empty text, in every scope
	blockedID                // of span.Blocked, in every scope
	firstID
)

// scope is where texts count as distinct: a label of an origin, or the tag keys of one
// of its lists of tags.
type scope uint32

const (
	lists          = int(span.EndOfLists - span.FirstList)
	scopesAnOrigin = span.LabelCount + lists
	spread         = 0x9e3779b97f4a7c15 // odd, and spreads small numbers over all bits
)

func scopeOf(origin OriginID, l span.Label) scope {
	return scope(origin)*scope(scopesAnOrigin) + scope(l)
}

// tagKeyScope is the scope of the keys of a list's tags.
func tagKeyScope(origin OriginID, l span.Label) scope {
	return scope(origin)*scope(scopesAnOrigin) + scope(tagKeyKind(l))
}

// tagKeyKind is the number of that scope among those of an origin.
func tagKeyKind(list span.Label) int { return span.LabelCount + int(list-span.FirstList) }

// parts are the number of the scope's origin, and the scope's own among those of an origin.
func (s scope) parts() (origin OriginID, kind int) {
	return OriginID(s / scope(scopesAnOrigin)), int(s % scope(scopesAnOrigin))
}

// hashedText is the hash of a text, wherever it stands.
type hashedText uint64

func textHash(text string) hashedText { return hashedText(maphash.String(seed, text)) }

// in is the hash of the text in a scope.
func (h hashedText) in(s scope) uint64 { return uint64(h) ^ uint64(s)*spread }

// identity is the hash of the text in a scope of an origin, the same in every interval.
func (h hashedText) identity(origin uint64, kind int) uint64 {
	return uint64(h) ^ (origin+uint64(kind))*spread
}

func hashOf(s scope, text string) uint64 { return textHash(text).in(s) }

// labelTable numbers the distinct texts that the keys of one interval have. Like its
// hashTable it grows under the Registry's lock and is searched without it.
type labelTable struct {
	list   publishedList[label] // by labelID
	ids    hashTable
	filter bloomFilter // of all that ids finds
}

// label is a text with its scope. It doesn't change once its number can be found, except
// for a tag key's gate and collapsesTo.
type label struct {
	text        string
	hash        uint64
	scope       scope
	isBlocked   bool    // span.Blocked, or a tag with that as its value
	tagKey      uint32  // of a tag key, or a tag with it: the index among the tag keys
	gate        uint32  // of a tag key: the gate before its budget; atomic
	collapsesTo labelID // of a tag key: what tags become that get no number of their own; atomic
}

// init makes the zero table an empty one.
func (t *labelTable) init() {
	t.ids.hashOf = func(id uint32) uint64 { return t.list.items[id].hash }
	t.ids.init()
	t.list.append(label{}, label{text: span.Blocked, isBlocked: true})
}

// find returns the number of a text. Its hash is that of hashOf.
func (t *labelTable) find(s scope, hash uint64, text string) (labelID, bool) {
	for id := range t.ids.candidates(hash) {
		if known := t.at(id); known.scope == s && known.text == text {
			return id, true
		}
	}
	return absentID, false
}

// lookUp is find for a text that is probably not there.
func (t *labelTable) lookUp(s scope, text string) (labelID, bool) {
	if !t.filter.mayHave(s, text) {
		return absentID, false
	}
	return t.find(s, hashOf(s, text), text)
}

func (t *labelTable) at(id labelID) *label { return t.list.at(id) }

// add numbers a label that was not found, and copies its text.
func (t *labelTable) add(added label) labelID {
	id := labelID(len(t.list.items))
	added.text = strings.Clone(added.text)
	t.list.append(added)
	t.filter.add(added.scope, added.text)
	t.ids.put(added.hash, id)
	return id
}

// raise raises the gate of a tag key, after the last tag that passed it is findable.
func (t *labelTable) raise(tagKey labelID, to height) {
	atomic.StoreUint32(&t.list.items[tagKey].gate, uint32(to))
}

// collapse notes what the tags of a tag key become that get no number of their own.
func (t *labelTable) collapse(tagKey, into labelID) {
	atomic.StoreUint32(&t.list.items[tagKey].collapsesTo, into)
}

// height is that of a tag key's gate.
func (l *label) height() height { return height(atomic.LoadUint32(&l.gate)) }

// into is what collapse noted of a tag key, or absentID.
func (l *label) into() labelID { return atomic.LoadUint32(&l.collapsesTo) }

// hashed is the hash of the text alone.
func (l *label) hashed() hashedText { return hashedText(l.hash ^ uint64(l.scope)*spread) }

func (l *label) isTag() bool {
	_, kind := l.scope.parts()
	return kind >= int(span.FirstList) && kind < int(span.EndOfLists)
}

// labelBytes is the memory of a label, with the capacity that the list has for more, its
// slots in a table that has just grown, and what the next interval knows of it.
func labelBytes(text string) int {
	return len(text) + int(unsafe.Sizeof(label{}))*5/4 + 4*slotBytes + setBytes
}
