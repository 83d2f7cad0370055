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
	limit      int
	kept       int           // slots kept for origins of the last two intervals
	others     int           // slots taken by other origins
	services   int           // slots of others that only services can take
	slots      budget        // budget for the other origins, without the quarter for services
	names      []span.Origin // by OriginID; replaced, not changed, once it was returned
	list       []origin      // by OriginID
	ids        map[span.Origin]OriginID
	perProcess map[int32]int // origins admitted for each process
	common     OriginID      // ID of the common origin; noOrigin until it is needed
}

// origin is the state of one origin: its budgets, and what it has used of the shared ones.
type origin struct {
	identity uint64        // hash, the same in every interval
	isNew    bool          // not present in the previous interval
	budgets  [kinds]budget // by kind of scope; budgets for tags belong to their tag keys
	overflow Admission     // row for spans that lost all labels; zero until it is needed
	rows     usage         // rows taken
	extra    usage         // rows taken from the reserve, see rowBudget
}

// identityOf returns a hash of a label of the origin. It is the same in every interval.
func (o *origin) identityOf(name labelName) uint64 {
	return maphash.String(seed, name.text) ^ (o.identity+uint64(name.scope.kind))*hashMultiplier
}

// newOriginTable returns the table of a new interval. Origins that were present in each of the last two intervals
// (stable ones) have a slot reserved.
func newOriginTable(limit int, p *previous) originTable {
	stable := 0
	for _, o := range p.origins {
		if o.isStable {
			stable++
		}
	}
	return originTable{
		limit: limit, kept: stable,
		slots: newBudget(threeQuarters(limit), keptRows{stable: stable}),
		ids:   map[span.Origin]OriginID{}, perProcess: map[int32]int{}, common: noOrigin,
	}
}

func threeQuarters(n int) int { return n - n/4 }

// takeSlot takes a slot for an origin, and reports whether one was free. A stable origin always has
// a slot.
func (t *originTable) takeSlot(o span.Origin, class class) bool {
	if class == classStable {
		return true // t.kept includes its slot
	}
	if t.kept+t.others >= t.limit {
		return false
	}
	isService := o.Attributes == ""
	share, hasShare := t.slots.findFree(class)
	switch {
	case isService && t.services < t.limit/4:
		t.services++
	case hasShare:
		t.slots.take(share, notMask)
	case isService: // all shares are used up, but not all slots: a service can have any of them
	default:
		return false
	}
	t.others++
	return true
}

// mayAddFor reports whether a process may add an origin. All origins of a process may take half of
// the slots; those with resource attributes may take three quarters of that half.
func (t *originTable) mayAddFor(process int32, o span.Origin) bool {
	limit := max(1, t.limit/2)
	if o.Attributes != "" {
		limit = threeQuarters(limit)
	}
	return t.perProcess[process] < limit
}

// admitOrigin returns the ID of an origin, and adds the origin if it is new in this interval. It
// reports false if the origin is new and gets no slot: because none is free, or because the process
// that sent it has reached its limit. process is 0 if unknown, and then has no limit.
func (t *tables) admitOrigin(o span.Origin, process int32) (OriginID, bool) {
	if id, isKnown := t.origins.ids[o]; isKnown {
		return id, true
	}
	identity := maphash.Comparable(seed, o)
	isOverLimit := process != 0 && !t.origins.mayAddFor(process, o)
	isAdmitted := !isOverLimit && t.origins.takeSlot(o, t.classOfOrigin(identity))
	if !isAdmitted {
		// One use makes an origin classSeen in the next interval. (A label needs two.)
		t.filter.recurred.add(identity)
		return 0, false
	}
	if process != 0 {
		t.origins.perProcess[process]++
	}
	id := t.addOrigin(o, identity)
	t.origins.ids[o] = id
	return id, true
}

// classOfOrigin returns the class of an origin. An origin recurs if it is seen in two successive
// intervals.
func (t *tables) classOfOrigin(identity uint64) class {
	switch o := t.previous.origins[identity]; {
	case o != nil && o.isStable:
		return classStable
	case o != nil, t.filter.recurredBefore.has(identity):
		return classSeen
	}
	return classNew
}

// joinCommon adds an origin to the common origin, and returns the ID of the common origin. The
// common origin has only the fields that are equal in all of its members. The exporter of a sealed
// cycle can still be reading names, so joinCommon replaces the slice instead of changing it.
func (t *tables) joinCommon(o span.Origin) OriginID {
	table := &t.origins
	if table.common == noOrigin {
		table.common = t.addOrigin(o, commonIdentity)
		return table.common
	}
	if common := table.names[table.common]; common != o {
		table.names = slices.Clone(table.names)
		table.names[table.common] = common.Common(o)
	}
	return table.common
}

// addOrigin assigns an ID to an origin and creates its budgets.
func (t *tables) addOrigin(name span.Origin, identity uint64) OriginID {
	record := t.previous.origins[identity]
	added := origin{identity: identity, isNew: record == nil}
	if record == nil {
		record = &previousOrigin{}
	}
	for kind := range int32(kinds) {
		limit := t.limitOf(kind)
		b := newBudget(limit, record.labels[kind])
		if t.config.Masking == MaskOverBudget && isMaskable(span.Label(kind)) {
			b.reserveForMasks(limit)
		}
		added.budgets[kind] = b
	}
	t.origins.names = append(t.origins.names, name)
	t.origins.list = append(t.origins.list, added)
	t.rowBudget.join(record)
	return OriginID(len(t.origins.list) - 1)
}

// limitOf returns the budget of a kind of scope.
func (t *tables) limitOf(kind int32) int {
	if kind >= int32(span.LabelCount) {
		return MaxTagKeys
	}
	return t.config.Budgets[kind]
}
