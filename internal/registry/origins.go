package registry

import (
	"hash/maphash"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// OriginID numbers an origin in one interval. IDs are dense, and are not valid in other intervals.
type OriginID uint32

// noOrigin is not the ID of any origin.
const noOrigin OriginID = mostOrigins + 1

// commonIdentity is the identity of the common origin, instead of a hash.
const commonIdentity = 0

// originTable assigns IDs to the origins of one interval, and limits their number.
//
// Origins that were present in the last two intervals keep their slots. An origin that differs from
// its service only in resource attributes, such as a pod, takes one of three quarters of the slots,
// which are shared out like any budget: half of those that are not kept are for any origin, the
// other half is for origins that were seen in the previous interval. The last quarter is for
// services. So short-lived pods displace neither long-lived pods nor services.
type originTable struct {
	limit         int
	stablePlaces  int           // places kept for origins of the last two intervals
	otherPlaces   int           // places taken by other origins
	servicePlaces int           // part of otherPlaces that only services can take
	slots         budget        // budget for the other origins, without the quarter for services
	names         []span.Origin // by OriginID; replaced, not changed, once it was returned
	byID          []origin      // index is an OriginID
	ids           map[span.Origin]OriginID
	perProcess    map[int32]int // origins admitted for each process
	common        OriginID      // ID of the common origin; noOrigin until it is needed
}

// origin is the state of one origin: its budgets, and what it has used of the shared ones.
type origin struct {
	identity    uint64        // hash, the same in every interval
	isNew       bool          // not present in the previous interval
	budgets     [kinds]budget // by kind of scope; budgets for tags belong to their tag keys
	overflow    Admission     // row for spans that lost all labels; zero until it is needed
	rows        usage         // rows taken
	fromReserve usage         // rows taken from the reserve, see rowBudget
}

// identityOf returns a hash of a label of the origin. It is the same in every interval.
func (o *origin) identityOf(name labelName) uint64 {
	return maphash.String(seed, name.text) ^ (o.identity+uint64(name.scope.kind))*hashMultiplier
}

// newOriginTable returns an empty table for at most limit origins. It reserves a place in the table for
// each stable origin, one that was present in both of the last two intervals.
func newOriginTable(limit int, p *previous) originTable {
	stable := 0
	for _, o := range p.origins {
		if o.isStable {
			stable++
		}
	}
	slots := threeQuarters(limit) // the last quarter is for origins without resource attributes
	return originTable{
		limit:        limit,
		stablePlaces: stable,
		slots:        newBudget(slots, keptRows{stable: stable}),
		ids:          map[span.Origin]OriginID{},
		perProcess:   map[int32]int{},
		common:       noOrigin,
	}
}

func threeQuarters(n int) int { return n - n/4 }

// takePlace takes one of the limited places for an origin that is new in this interval. It returns false
// if none is free. A place is always reserved for an origin of classStable. Origins with resource
// attributes can take at most three quarters of the places.
func (t *originTable) takePlace(o span.Origin, class class) bool {
	if class == classStable {
		return true // newOriginTable has reserved its place
	}
	isFull := t.stablePlaces+t.otherPlaces >= t.limit
	if isFull {
		return false
	}
	hasPlace := t.takeShare(o, class)
	if hasPlace {
		t.otherPlaces++
	}
	return hasPlace
}

// takeShare counts a new origin in the part of the places that is for origins of its kind. It returns false
// if this part is used up. An origin without resource attributes, a service, may take any free place.
func (t *originTable) takeShare(o span.Origin, class class) bool {
	isService := o.Attributes == ""
	if isService && t.servicePlaces < t.limit/4 {
		t.servicePlaces++
		return true
	}
	share, hasFree := t.slots.findFree(class)
	if hasFree {
		t.slots.take(share, notMask)
		return true
	}
	return isService
}

// mayAddFor reports whether a process may add an origin. One process may add at most half of all
// origins, so that it cannot displace other processes. At most three quarters of that half can be
// origins with resource attributes.
func (t *originTable) mayAddFor(process int32, o span.Origin) bool {
	limit := max(1, t.limit/2)
	if o.Attributes != "" {
		limit = threeQuarters(limit)
	}
	return t.perProcess[process] < limit
}

// admitOrigin returns the ID of an origin, the description of a process that sends spans. It adds the
// origin if it is new in this interval. It returns false if there are too many origins, or too many of
// the given process. process is 0 if it is unknown; then only the first limit applies.
func (t *tables) admitOrigin(o span.Origin, process int32) (OriginID, bool) {
	id, isKnown := t.origins.ids[o]
	if isKnown {
		return id, true
	}
	identity := maphash.Comparable(seed, o)
	isOverLimit := process != 0 && !t.origins.mayAddFor(process, o)
	if isOverLimit || !t.origins.takePlace(o, t.classOfOrigin(identity)) {
		t.filter.recurred.add(identity) // in the next interval, the origin precedes unknown ones
		return 0, false
	}
	if process != 0 {
		t.origins.perProcess[process]++
	}
	id = t.addOrigin(o, identity)
	t.origins.ids[o] = id
	return id, true
}

// classOfOrigin returns the priority of an origin that is new in this interval. identity is its hash.
// The result is classStable if the origin was present in both of the last two intervals, classSeen if
// it was seen in the last one, and classNew otherwise.
func (t *tables) classOfOrigin(identity uint64) class {
	record := t.previous.origins[identity]
	if record != nil && record.isStable {
		return classStable
	}
	if record != nil || t.filter.recurredBefore.has(identity) {
		return classSeen
	}
	return classNew
}

// joinCommon returns the ID of the common origin, which counts the spans of all processes that have no
// origin of their own. Its fields are those that are equal in all of these processes. Exporters can
// read the names without the lock, so joinCommon replaces the slice instead of changing it.
func (t *tables) joinCommon(o span.Origin) OriginID {
	table := &t.origins
	if table.common == noOrigin {
		table.common = t.addOrigin(o, commonIdentity)
		return table.common
	}
	current := table.names[table.common]
	if current != o {
		names := slices.Clone(table.names)
		names[table.common] = current.Common(o) // without the fields that differ
		table.names = names
	}
	return table.common
}

// addOrigin gives the next ID to an origin, the description of a process that sends spans. identity is its
// hash.
func (t *tables) addOrigin(name span.Origin, identity uint64) OriginID {
	previous, wasPresent := t.previous.origins[identity]
	if !wasPresent {
		previous = &previousOrigin{}
	}
	added := origin{identity: identity, isNew: !wasPresent}
	for kind := range int32(kinds) {
		added.budgets[kind] = t.newLabelBudget(kind, previous.labels[kind])
	}
	t.origins.names = append(t.origins.names, name)
	t.origins.byID = append(t.origins.byID, added)
	t.rowBudget.countOrigin(previous)
	return OriginID(len(t.origins.byID) - 1)
}

// newLabelBudget returns the limit on distinct values of a label, or on the tag keys of a list of tags.
// kept is the number of values of the previous interval that keep their rows.
func (t *tables) newLabelBudget(kind int32, kept keptRows) budget {
	limit := t.limitOf(kind)
	b := newBudget(limit, kept)
	if t.config.Masking == MaskOverBudget && isMaskable(span.Label(kind)) {
		b.reserveForMasks(limit)
	}
	return b
}

// limitOf returns the maximum number of distinct values of a label. kind is the number of the label.
// Numbers from span.LabelCount on stand for the tag keys of a list of tags.
func (t *tables) limitOf(kind int32) int {
	isTagKeys := kind >= int32(span.LabelCount)
	if isTagKeys {
		return MaxTagKeys
	}
	return t.config.Budgets[kind]
}
