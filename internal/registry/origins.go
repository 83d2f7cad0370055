package registry

import (
	"hash/maphash"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// noOrigin is a number that no origin has.
const noOrigin OriginID = mostOrigins + 1

// originTable numbers the origins of one interval.
type originTable struct {
	names     []span.Origin // by OriginID; what was handed out never changes
	list      []origin      // by OriginID
	ids       map[span.Origin]OriginID
	ofProcess map[int32]int // origins that a process was the first to have
	common    OriginID      // of those that there is no room for; noOrigin while there are none
}

// origin is what one origin has used of its budgets.
type origin struct {
	identity uint64        // a hash that is the same in every interval
	isNew    bool          // it was not there in the last interval
	budgets  [kinds]budget // by kind of scope; those of lists are in their tag keys
	overflow Admission     // the row of what has lost its whole key, where there is one
}

func newOriginTable() originTable {
	return originTable{ids: map[span.Origin]OriginID{}, ofProcess: map[int32]int{}, common: noOrigin}
}

// identityOf is the hash of a name of the origin that is the same in every interval.
func (o *origin) identityOf(name labelName) uint64 {
	return maphash.String(seed, name.text) ^ (o.identity+uint64(name.scope.kind))*spread
}
