package registry

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// seed and secret are of one process, so that nobody outside can choose labels that collide.
var (
	seed   = maphash.MakeSeed()
	secret = rand.Uint64()
)

// spread is odd, and spreads small numbers over all bits.
const spread = 0x9e3779b97f4a7c15

// mixed is a hash of two.
func mixed(a, b uint64) uint64 {
	upper, lower := bits.Mul64(a^spread, b^secret)
	return bits.RotateLeft64(a, 23) + upper ^ lower
}

// labelID is the number of a distinct text in one scope and interval.
type labelID = uint32

const (
	absentID  labelID = iota // of an empty text, in every scope
	blockedID                // of span.Blocked, in every scope
	firstID

	pendingID labelID = 1 << 31 // the first of those that stand for labels without a number
)

// lists is how many labels are lists of tags.
const lists = int(span.EndOfLists - span.FirstList)

// kinds is how many kinds of scopes an origin has.
const kinds = span.LabelCount + lists

// scope is where texts count as distinct: a label of an origin, or the tag keys of one of its
// lists of tags.
type scope struct {
	origin OriginID
	kind   int32 // the label, or behind all labels the list
}

func isList(l span.Label) bool { return l >= span.FirstList && l < span.EndOfLists }

func tagKeyKind(list span.Label) int32 { return int32(span.LabelCount) + int32(list-span.FirstList) }

// labelTable numbers the distinct texts that the keys of one interval have.
type labelTable struct {
	list []label            // by labelID
	ids  map[uint64]labelID // by identity, or by the next number that is free
}

type labelName struct {
	scope scope
	text  string
}

// label is a text with its scope.
type label struct {
	labelName
	identity uint64  // a hash of text and scope, the same in every interval
	tagKey   labelID // of a tag: the number of its tag key
	tags     *tagKey // of a tag key: what is known of its tags
	history
	isBlocked bool // span.Blocked, or a tag with that as its value: it takes no row
	isMask    bool // it came as a mask only, and not as a name
}

// tagKey is the budget of the tags with one tag key.
type tagKey struct {
	budget
	limit int
	lost  uint64 // keys that lost such a tag
}

func newLabelTable() labelTable {
	blocked := label{labelName: labelName{text: span.Blocked}, isBlocked: true}
	return labelTable{list: []label{{}, blocked}, ids: map[uint64]labelID{}}
}

// find returns the number of a label. Two labels may have one identity, so the name decides.
func (t *labelTable) find(name labelName, identity uint64) (id labelID, ok bool) {
	for id, ok = t.ids[identity]; ok && t.list[id].labelName != name; id, ok = t.ids[identity] {
		identity++
	}
	return id, ok
}

// add numbers a label that was not found.
func (t *labelTable) add(l label) {
	at := l.identity
	for t.ids[at] != absentID {
		at++
	}
	t.ids[at] = labelID(len(t.list))
	t.list = append(t.list, l)
}

// isTag reports whether it is a tag, and not a tag key or a text.
func (l *label) isTag() bool { return isList(span.Label(l.scope.kind)) }

// mapSlot is what a number by a hash costs in a map at most: one that has just grown is seven
// sixteenths full, and has a byte beside each entry.
const mapSlot = (8 + 8 + 1) * 16 / 7

// labelBytes is the memory of a label, with the capacity that the list has for more, its
// place in the map, and what the next interval knows of it.
func labelBytes(l *label) int {
	bytes := len(l.text) + int(unsafe.Sizeof(label{}))*5/4 + 2*mapSlot
	if l.tags != nil {
		bytes += int(unsafe.Sizeof(tagKey{}))
	}
	return bytes
}
