package registry

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

var (
	// seed and secret differ between processes, so that clients cannot choose labels whose hashes
	// collide.
	seed   = maphash.MakeSeed()
	secret = rand.Uint64()
)

// hashMultiplier is odd and spreads small numbers over all bits.
const hashMultiplier = 0x9e3779b97f4a7c15

// mix combines two hashes into one.
func mix(a, b uint64) uint64 {
	upper, lower := bits.Mul64(a^hashMultiplier, b^secret)
	return bits.RotateLeft64(a, 23) + upper ^ lower
}

// labelID numbers a distinct text in one scope and interval.
type labelID = uint32

const (
	absentID  labelID = iota // empty text, in every scope
	blockedID                // span.Blocked, in every scope
	firstID

	pendingID labelID = 1 << 31 // pendingID+i stands for admitter.pending[i], which has no ID yet
)

// Labels without an own hash are hashed as their IDs, which are the same in every interval.
const hashOfAbsent, hashOfBlocked = uint64(absentID), uint64(blockedID)

// isPending reports whether an ID is temporary, until the key with the new label is admitted.
func isPending(id labelID) bool { return id >= pendingID }

// scope is the set in which texts must be distinct: one label of an origin, or the tag keys of one
// of its lists of tags.
type scope struct {
	origin OriginID
	kind   scopeKind
}

// scopeKind is the number of a label, or span.LabelCount plus the index of a list of tags. The latter stands
// for the tag keys of the list.
type scopeKind int32

// endOfKinds is the number of kinds of scopes.
const endOfKinds = scopeKind(span.LabelCount) + scopeKind(span.EndOfLists-span.FirstList)

func tagKeyKind(list span.Label) scopeKind {
	return scopeKind(span.LabelCount) + scopeKind(list-span.FirstList)
}

func (k scopeKind) isTagKeys() bool { return int(k) >= span.LabelCount }

// label returns the label of the scope. For the tag keys of a list of tags it returns the list.
func (k scopeKind) label() span.Label {
	if k.isTagKeys() {
		return span.FirstList + span.Label(int(k)-span.LabelCount)
	}
	return span.Label(k)
}

// labelTable assigns IDs to the distinct texts of the keys of one interval.
type labelTable struct {
	byID []labelValue       // index is a labelID
	ids  map[uint64]labelID // by hash; after a collision, by the next free number
}

// labelName identifies a label value, a tag or a tag key in one interval.
type labelName struct {
	scope scope
	text  string
}

// labelValue is a label value, a tag such as "region:eu", or a tag key such as "region".
type labelValue struct {
	labelName
	hash   uint64     // hash of text and scope, the same in every interval
	tagKey labelID    // ID of the tag key, if this is a tag
	values *tagValues // budget for the values of this tag key, if this is a tag key
	history
	isBlocked  bool // span.Blocked, or a tag with that value: it takes no slot of a budget
	isOnlyMask bool // used only as the mask of other values so far
}

// tagValues is the budget for the values of one tag key.
type tagValues struct {
	budget
	limit     int
	lostCount uint64 // keys that lost a tag with this tag key
}

func newLabelTable() labelTable {
	blocked := labelValue{labelName: labelName{text: span.Blocked}, isBlocked: true}
	return labelTable{byID: []labelValue{{}, blocked}, ids: map[uint64]labelID{}}
}

// find returns the ID of the label with the given name, or false if the table has no such label. hash is the
// hash of the label. If several labels have the same hash, they are stored under hash, hash+1, hash+2 and so
// on.
func (t *labelTable) find(name labelName, hash uint64) (labelID, bool) {
	for mapKey := hash; ; mapKey++ {
		id, isUsed := t.ids[mapKey]
		if !isUsed {
			return absentID, false
		}
		if t.byID[id].labelName == name {
			return id, true
		}
	}
}

// add gives the next ID to a label that is not in the table yet. If t.ids already has its hash, because of another
// label, the new label is stored under hash+1, hash+2 and so on, as find expects.
func (t *labelTable) add(l labelValue) {
	mapKey := l.hash
	for t.ids[mapKey] != absentID {
		mapKey++
	}
	t.ids[mapKey] = labelID(len(t.byID))
	t.byID = append(t.byID, l)
}

// isTag reports whether the label is a tag, as opposed to a tag key or another text.
func (l *labelValue) isTag() bool {
	kind := span.Label(l.scope.kind)
	return kind >= span.FirstList && kind < span.EndOfLists
}

// listEntryBytes returns the memory of one entry of a list. append leaves up to a quarter of spare capacity.
func listEntryBytes(entry uintptr) int { return int(entry) * 5 / 4 }

// mapEntryBytes is the maximum cost in bytes of a map entry from hash to ID. A map that has just grown is
// seven sixteenths full, and has one control byte per slot.
const mapEntryBytes = (8 + 8 + 1) * 16 / 7

// labelBytes returns the memory of a label in bytes: its text, its list entry with spare capacity, its
// map entry, and the data that is kept for the next interval.
func labelBytes(l *labelValue) int {
	const mapBytes = 2 * mapEntryBytes // one entry in this interval, one in the next
	bytes := len(l.text) + listEntryBytes(unsafe.Sizeof(labelValue{})) + mapBytes
	if l.values != nil {
		bytes += int(unsafe.Sizeof(tagValues{}))
	}
	return bytes
}
