package registry

import (
	"hash/maphash"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// OriginID is the dense number of an origin in one interval. It means nothing in another.
type OriginID uint32

// noOrigin is a number that no origin has.
const noOrigin OriginID = mostOrigins + 1

// commonIdentity is the identity of the common origin, instead of a hash.
const commonIdentity = 0

// originTable numbers the origins of one interval.
//
// Origins that were there in the last two intervals keep their places. An origin that only
// attributes tell from its service, such as a pod, takes one of three quarters of all places,
// which are divided as those of any budget: half of what is not kept is open, the other half is
// for origins that came in the previous interval. The last quarter is for services. So pods that
// come and go displace neither the pods that stay nor services.
type originTable struct {
	limit     int
	kept      int           // places for origins that stay
	others    int           // places taken by others
	services  int           // of these, places that only services may take
	places    budget        // for others, without the quarter for services
	names     []span.Origin // by OriginID; a slice that was handed out never changes
	list      []origin      // by OriginID
	ids       map[span.Origin]OriginID
	ofProcess map[int32]int // origins that a process was the first to have
	common    OriginID      // of those without a place; noOrigin if there are none
}

// origin is what one origin has used of its budgets.
type origin struct {
	identity uint64        // a hash that is the same in every interval
	isNew    bool          // it was not there in the previous interval
	budgets  [kinds]budget // by kind of scope; those of tags are in their tag keys
	overflow Admission     // the row of spans that lost their whole key, if there is one
	rows     usage         // taken
	extra    usage         // taken beyond the rows of all origins, see rowBudget
}

// identityOf is the hash of a name of the origin that is the same in every interval.
func (o *origin) identityOf(name labelName) uint64 {
	return maphash.String(seed, name.text) ^ (o.identity+uint64(name.scope.kind))*spread
}

func newOriginTable(limit int, p *previous) originTable {
	kept := 0
	for _, o := range p.origins {
		if o.isStaying {
			kept++
		}
	}
	return originTable{
		limit: limit, kept: kept,
		places: newBudget(withoutQuarter(limit), recurring{steady: kept}, false),
		ids:    map[span.Origin]OriginID{}, ofProcess: map[int32]int{}, common: noOrigin,
	}
}

func withoutQuarter(places int) int { return places - places/4 }

// take takes a place for an origin, and reports false if there is none for it.
func (t *originTable) take(o span.Origin, known recurrence) bool {
	if known == steady {
		return true // its place is kept
	}
	if t.kept+t.others >= t.limit {
		return false
	}
	isService := o.Attributes == ""
	from, ok := t.places.find(known, false, alone)
	switch {
	case isService && t.services < t.limit/4:
		t.services++
	case ok:
		t.places.take(from, false)
	case !isService:
		return false
	}
	t.others++
	return true
}

// mayHaveMore reports whether a process may have one more origin: it may have half of all.
func (t *originTable) mayHaveMore(process int32, o span.Origin) bool {
	most := max(1, t.limit/2)
	if o.Attributes != "" {
		most = withoutQuarter(most)
	}
	return t.ofProcess[process] < most
}

// admitOrigin numbers an origin of a process, which is 0 if it is not known. It reports false
// if there is no place for one more, or the process has half of all.
func (t *tables) admitOrigin(o span.Origin, process int32) (OriginID, bool) {
	if id, known := t.origins.ids[o]; known {
		return id, true
	}
	identity := maphash.Comparable(seed, o)
	known := t.recurrenceOfOrigin(identity)
	if process != 0 && !t.origins.mayHaveMore(process, o) || !t.origins.take(o, known) {
		t.filter.twice.add(identity) // an origin recurs if it comes in the next interval
		return 0, false
	}
	if process != 0 {
		t.origins.ofProcess[process]++
	}
	id := t.addOrigin(o, identity)
	t.origins.ids[o] = id
	return id, true
}

func (t *tables) recurrenceOfOrigin(identity uint64) recurrence {
	switch o := t.previous.origins[identity]; {
	case o != nil && o.isStaying:
		return steady
	case o != nil, t.filter.before.has(identity):
		return seen
	}
	return open
}

// joinCommon makes the common origin that of one more. It has the fields on which all of its
// origins agree so far, so it is right for every cycle that they are counted in. A sealed cycle
// may be reading what it was before.
func (t *tables) joinCommon(o span.Origin) OriginID {
	table := &t.origins
	if table.common == noOrigin {
		table.common = t.addOrigin(o, commonIdentity)
		return table.common
	}
	if known := table.names[table.common]; known != o {
		table.names = slices.Clone(table.names)
		table.names[table.common] = known.Common(o)
	}
	return table.common
}

func (t *tables) addOrigin(name span.Origin, identity uint64) OriginID {
	left := t.previous.origins[identity]
	added := origin{identity: identity, isNew: left == nil}
	if left == nil {
		left = &previousOrigin{}
	}
	for kind := range int32(kinds) {
		hasMasks := t.config.Masking == MaskOverBudget && isMaskable(span.Label(kind))
		added.budgets[kind] = newBudget(t.limitOf(kind), left.labels[kind], hasMasks)
	}
	t.origins.names = append(t.origins.names, name)
	t.origins.list = append(t.origins.list, added)
	t.rowBudget.join(left)
	return OriginID(len(t.origins.list) - 1)
}

// limitOf is the budget of a kind of scope.
func (t *tables) limitOf(kind int32) int {
	if kind >= int32(span.LabelCount) {
		return MaxTagKeys
	}
	return t.config.Budgets[kind]
}
