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

// commonHash is the hash of the common origin.
const commonHash = 0

// originTable assigns IDs to the origins of one interval, and limits their number.
//
// Origins that were present in the last two intervals keep their slots. An origin that differs from
// its service only in resource attributes, such as a pod, takes one of three quarters of the slots,
// which are shared out like any budget: half of those that are not kept are for any origin, the
// other half is for origins that were seen in the previous interval. The last quarter is for
// services. So short-lived pods displace neither long-lived pods nor services.
type originTable struct {
	limit          int           // number of slots
	stableSlots    int           // slots reserved for origins of the last two intervals
	otherSlots     int           // slots taken by other origins
	serviceSlots   int           // part of otherSlots in the quarter for services
	sharedSlots    budget        // slots for the other origins, without the quarter for services
	descriptions   []span.Origin // by OriginID; replaced, not changed, once it was returned
	byID           []origin      // index is an OriginID
	ids            map[span.Origin]OriginID
	countByProcess map[int32]int // number of origins that each process has added
	commonID       OriginID      // ID of the common origin; noOrigin until it is needed
}

// origin is the state of one origin: its budgets, and what it has used of the shared ones.
type origin struct {
	hash        uint64        // hash, the same in every interval
	isNew       bool          // not present in the previous interval
	budgets     [kinds]budget // by kind of scope; budgets for tags belong to their tag keys
	rows        usage         // rows taken
	fromReserve usage         // rows taken from the reserve, see rowBudget
}

// hashOf returns a hash of a label of the origin. It is the same in every interval.
func (o *origin) hashOf(name labelName) uint64 {
	return maphash.String(seed, name.text) ^ (o.hash+uint64(name.scope.kind))*hashMultiplier
}

// newOriginTable returns an empty table with slots for limit origins. It reserves a slot for each stable
// origin, one that was present in both of the last two intervals.
func newOriginTable(limit int, p *previous) originTable {
	stable := 0
	for _, o := range p.origins {
		if o.isStable {
			stable++
		}
	}
	shared := threeQuarters(limit) // the last quarter is for origins without resource attributes
	return originTable{
		limit:          limit,
		stableSlots:    stable,
		sharedSlots:    newBudget(shared, keptRows{stable: stable}),
		ids:            map[span.Origin]OriginID{},
		countByProcess: map[int32]int{},
		commonID:       noOrigin,
	}
}

func threeQuarters(n int) int { return n - n/4 }

// takeSlot takes one of the slots, a limited number, for an origin that is new in this interval. It returns
// false if none is free. An origin with priorityStable, which was present in the last two intervals, always gets
// a slot.
func (t *originTable) takeSlot(o span.Origin, priority rowPriority) bool {
	if priority == priorityStable {
		return true // newOriginTable has reserved its slot
	}
	isFull := t.stableSlots+t.otherSlots >= t.limit
	if isFull || !t.takeSlotOfKind(o, priority) {
		return false
	}
	t.otherSlots++
	return true
}

// takeSlotOfKind takes a slot from the quarter for services, origins without resource attributes, or from the
// three quarters for all origins. It returns false if the origin has resource attributes and these three
// quarters are used up. The caller has checked that a slot is free.
func (t *originTable) takeSlotOfKind(o span.Origin, priority rowPriority) bool {
	isService := o.Attributes == ""
	if isService && t.serviceSlots < t.limit/4 {
		t.serviceSlots++
		return true
	}
	share, hasFree := t.sharedSlots.findFree(priority)
	if hasFree {
		t.sharedSlots.shares[share].taken++
		return true
	}
	return isService // a service can take any slot that is free
}

// mayAddFor reports whether a process may send spans for one more origin, a service or an instance of one. One
// process may add at most half of all origins, to leave room for other processes. At most three quarters of
// that half can be origins with resource attributes.
func (t *originTable) mayAddFor(process int32, o span.Origin) bool {
	limit := max(1, t.limit/2)
	if o.Attributes != "" {
		limit = threeQuarters(limit)
	}
	return t.countByProcess[process] < limit
}

// admitOrigin returns the ID of an origin, the description of a process that sends spans. It adds the
// origin if it is new in this interval. It returns false if there are too many origins, or too many of
// the process with the given process ID. If process is 0, the number of origins per process is not limited.
func (t *tables) admitOrigin(o span.Origin, process int32) (OriginID, bool) {
	id, isKnown := t.origins.ids[o]
	if isKnown {
		return id, true
	}
	hash := maphash.Comparable(seed, o)
	mayAdd := process == 0 || t.origins.mayAddFor(process, o)
	hasSlot := mayAdd && t.origins.takeSlot(o, t.priorityOfOrigin(hash))
	if !hasSlot {
		t.filter.recurred.add(hash) // in the next interval, its priority is prioritySeen
		return 0, false
	}
	if process != 0 {
		t.origins.countByProcess[process]++
	}
	id = t.addOrigin(o, hash)
	t.origins.ids[o] = id
	return id, true
}

// priorityOfOrigin returns the priority of an origin that is new in this interval, given the hash of the origin. The
// priority is priorityStable if the origin was present in both of the last two intervals, prioritySeen if it was
// seen in the last one, and priorityNew otherwise.
func (t *tables) priorityOfOrigin(hash uint64) rowPriority {
	record := t.previous.origins[hash]
	if record != nil && record.isStable {
		return priorityStable
	}
	gotNoSlot := t.filter.recurredBefore.has(hash) // in the previous interval
	if record != nil || gotNoSlot {
		return prioritySeen
	}
	return priorityNew
}

// joinCommon returns the ID of the common origin, which counts the spans of all processes that have no
// origin of their own. Its fields are those that are equal in all of these processes. Exporters can
// read the descriptions without the lock, so joinCommon replaces the slice instead of changing it.
func (t *tables) joinCommon(o span.Origin) OriginID {
	table := &t.origins
	if table.commonID == noOrigin {
		table.commonID = t.addOrigin(o, commonHash)
		return table.commonID
	}
	current := table.descriptions[table.commonID]
	if current != o {
		descriptions := slices.Clone(table.descriptions)
		descriptions[table.commonID] = current.Common(o) // without the fields that differ
		table.descriptions = descriptions
	}
	return table.commonID
}

// addOrigin gives the next ID to an origin, the description of a process that sends spans. Its limits depend
// on the labels that it had in the previous interval. hash is the hash of the origin.
func (t *tables) addOrigin(description span.Origin, hash uint64) OriginID {
	previous, wasPresent := t.previous.origins[hash]
	if !wasPresent {
		previous = &previousOrigin{}
	}
	added := origin{hash: hash, isNew: !wasPresent}
	for kind := range scopeKind(kinds) {
		added.budgets[kind] = t.newLabelBudget(kind, previous.labels[kind])
	}
	t.origins.descriptions = append(t.origins.descriptions, description)
	t.origins.byID = append(t.origins.byID, added)
	t.rowBudget.countOrigin(previous)
	return OriginID(len(t.origins.byID) - 1)
}

// newLabelBudget returns the limit on different values of a label, or on the tag keys of a list of tags.
// kind says which. kept is the number of values of the previous interval that keep their counters.
func (t *tables) newLabelBudget(kind scopeKind, kept keptRows) budget {
	limit := t.limitOf(kind)
	b := newBudget(limit, kept)
	mayMask := !kind.isTagKeys() && isMaskable(kind.label())
	if mayMask && t.config.Masking == MaskOverBudget {
		b.reserveForMasks(limit)
	}
	return b
}

// limitOf returns the maximum number of different values of a label, or of the tag keys of a list of tags.
// kind says which.
func (t *tables) limitOf(kind scopeKind) int {
	if kind.isTagKeys() {
		return MaxTagKeys
	}
	return t.config.Budgets[kind]
}
