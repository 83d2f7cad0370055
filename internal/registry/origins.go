package registry

import (
	"hash/maphash"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// noOrigin is a number that no origin has.
const noOrigin OriginID = mostOrigins + 1

// commonIdentity is what the common origin has in place of a hash.
const commonIdentity = 0

// originTable numbers the origins of one interval.
//
// Those that were there in the last two have their places kept. Of the rest whoever comes first has
// one, but an origin that attributes tell from its service passes a gate as a label does, and never
// takes the last quarter of all places: so pods that come and go push out neither those that stay, nor
// services.
type originTable struct {
	places    budget
	names     []span.Origin // by OriginID; what was handed out never changes
	list      []origin      // by OriginID
	ids       map[span.Origin]OriginID
	ofProcess map[int32]int // origins that a process was the first to have
	common    OriginID      // of those that there is no room for; noOrigin while there are none
}

func newOriginTable(most int, past *past) originTable {
	kept := 0
	for _, left := range past.origins {
		if left.hasStayed {
			kept++
		}
	}
	return originTable{
		places: budget{limit: most, kept: kept},
		ids:    map[span.Origin]OriginID{}, ofProcess: map[int32]int{}, common: noOrigin,
	}
}

// gate is how well an origin must be known to get a place.
func (t *originTable) gate(o span.Origin) familiarity {
	switch places := t.places; {
	case o.Attributes != "":
		return gateOf(places.others, places.kept, withoutQuarter(places.limit))
	case places.others+places.kept < places.limit:
		return unknown
	}
	return repeated
}

// mayHaveMore says whether a process may have one more origin: it may have half of all.
func (t *originTable) mayHaveMore(process int32, o span.Origin) bool {
	most := max(1, t.places.limit/2)
	if o.Attributes != "" {
		most = withoutQuarter(most)
	}
	return t.ofProcess[process] < most
}

func withoutQuarter(places int) int { return places - places/4 }

// origin is what one origin has used of its budgets.
type origin struct {
	identity uint64        // a hash that is the same in every interval
	isNew    bool          // it was not there in the last interval
	budgets  [kinds]budget // by kind of scope; those of lists are in their tag keys
	overflow Admission     // the row of what has lost its whole key, where there is one
}

// identityOf is the hash of a name of the origin that is the same in every interval.
func (o *origin) identityOf(name labelName) uint64 {
	return maphash.String(seed, name.text) ^ (o.identity+uint64(name.scope.kind))*spread
}
