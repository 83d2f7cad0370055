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
// A stable origin, which was present in the last two intervals, keeps its slot. Other origins share the slots
// that are left. An origin that differs from its service only in resource attributes, such as a pod, can use
// three quarters of all slots: half of those that are not for stable origins are for any origin, the other half
// is for origins that were seen in the previous interval. The last quarter is for services. So short-lived pods
// displace neither long-lived pods nor services.
type originTable struct {
	limit          int           // number of slots
	otherSlots     slots         // slots for origins that are not stable: all that are not reserved for stable ones
	serviceSlots   slots         // part of otherSlots: the quarter for services
	sharedSlots    budget        // part of otherSlots: three quarters, divided by priority
	descriptions   []span.Origin // by OriginID; replaced, not changed, once it was returned
	byID           []origin      // index is an OriginID
	ids            map[span.Origin]OriginID
	countByProcess map[int32]int // number of origins that each process has added
	commonID       OriginID      // ID of the common origin; noOrigin until it is needed
}

// origin is the state of one origin: its budgets, and what it has used of the shared ones.
type origin struct {
	hash        uint64             // hash, the same in every interval
	isNew       bool               // not present in the previous interval
	budgets     [endOfKinds]budget // by kind of scope; budgets for tags belong to their tag keys
	rows        usage              // rows taken
	reserveRows usage              // rows taken from the reserve, see rowBudget
}

// hashOf returns a hash of a label of the origin. It is the same in every interval.
func (o *origin) hashOf(name labelName) uint64 {
	return maphash.String(seed, name.text) ^ (o.hash+uint64(name.scope.kind))*hashMultiplier
}

// newOriginTable returns an empty table with slots for limit origins. It reserves a slot for each stable
// origin, one that was present in both of the last two intervals, and divides the others as described at originTable.
func newOriginTable(limit int, p *previous) originTable {
	stableCount := 0
	for _, o := range p.origins {
		if o.isStable {
			stableCount++
		}
	}
	return originTable{
		limit:          limit,
		otherSlots:     slots{limit: limit - stableCount},
		serviceSlots:   slots{limit: limit / 4},
		sharedSlots:    newBudget(threeQuarters(limit), keptCount{stable: stableCount}),
		ids:            map[span.Origin]OriginID{},
		countByProcess: map[int32]int{},
		commonID:       noOrigin,
	}
}

func threeQuarters(n int) int { return n - n/4 }

// takeSlot takes a slot for an origin that is new in this interval. It returns false if the number of origins
// has reached its limit. An origin with priorityStable, which was present in the last two intervals, always
// gets a slot.
func (t *originTable) takeSlot(o span.Origin, priority slotPriority) bool {
	if priority == priorityStable {
		return true // newOriginTable has reserved its slot
	}
	if !t.otherSlots.hasFree() {
		return false
	}
	isService := o.Attributes == ""
	part := t.findFreePart(isService, priority)
	if part == nil && !isService {
		return false // a service can take any free slot, an instance of it cannot
	}
	if part != nil {
		part.taken++
	}
	t.otherSlots.taken++
	return true
}

// findFreePart returns the part of the slots in which an origin that is not stable can take a slot: the quarter
// for services, or a share of the three quarters for all origins. It returns nil if these are used up.
func (t *originTable) findFreePart(isService bool, priority slotPriority) *slots {
	if isService && t.serviceSlots.hasFree() {
		return &t.serviceSlots
	}
	return t.sharedSlots.findFree(priority)
}

// mayAddFor reports whether a process may add the origin o to the table. One process may add at most half of all
// origins, to leave slots for other processes. At most three quarters of that half can be origins with resource
// attributes.
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
		t.rememberRejectedOrigin(hash)
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
func (t *tables) priorityOfOrigin(hash uint64) slotPriority {
	record, hadSlot := t.previous.origins[hash]
	if hadSlot && record.isStable {
		return priorityStable
	}
	if hadSlot || t.wasOriginRejected(hash) {
		return prioritySeen
	}
	return priorityNew
}

// rememberRejectedOrigin records that an origin got no slot, so that wasOriginRejected returns true for it in the
// next interval. Unlike a label value, an origin need not be used twice for this.
func (t *tables) rememberRejectedOrigin(hash uint64) { t.filter.recurred.add(hash) }

// wasOriginRejected reports whether an origin got no slot in the previous interval.
func (t *tables) wasOriginRejected(hash uint64) bool { return t.filter.recurredBefore.has(hash) }

// joinCommon adds o, a process that gets no slot, to the common origin, which counts the spans of all such
// processes, and returns the ID of the common origin. The description of the common origin has only the fields
// that are equal in all of these processes. Exporters can read the descriptions without the lock, so joinCommon
// replaces the slice instead of changing it.
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

// addOrigin gives the next ID to an origin, the description of a process that sends spans. Its budgets depend
// on the labels that it had in the previous interval. hash is the hash of the origin.
func (t *tables) addOrigin(description span.Origin, hash uint64) OriginID {
	earlier, wasPresent := t.previous.origins[hash]
	if !wasPresent {
		earlier = &previousOrigin{}
	}
	added := origin{hash: hash, isNew: !wasPresent}
	for kind := range endOfKinds {
		added.budgets[kind] = t.newLabelBudget(kind, earlier.labels[kind])
	}
	t.origins.descriptions = append(t.origins.descriptions, description)
	t.origins.byID = append(t.origins.byID, added)
	if !earlier.keepsRows() { // otherwise newRowBudget has counted it
		t.rowBudget.origins++
	}
	return OriginID(len(t.origins.byID) - 1)
}

// newLabelBudget returns the budget for a scope, either the values of a label or the tag keys of a list of tags.
// kept counts those that keep their slots from the previous interval.
func (t *tables) newLabelBudget(kind scopeKind, kept keptCount) budget {
	limit := t.limitOf(kind)
	b := newBudget(limit, kept)
	canHaveMasks := !kind.isTagKeys() && isMaskable(kind.label())
	if canHaveMasks && t.config.Masking == MaskOverBudget {
		b.reserveForMasks(limit)
	}
	return b
}

// limitOf returns the maximum number of different texts in a scope, which are either the values of a label or the
// tag keys of a list of tags.
func (t *tables) limitOf(kind scopeKind) int {
	if kind.isTagKeys() {
		return MaxTagKeys
	}
	return t.config.Budgets[kind]
}
