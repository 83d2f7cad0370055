package registry

import (
	"hash/maphash"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// noOrigin is a number that no origin has.
const noOrigin OriginID = mostOrigins + 1

// AdmitOrigin numbers an origin. It reports false where the interval has no room
// for one more.
func (r *Registry) AdmitOrigin(o span.Origin) (OriginID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.admitOrigin(r.conflated(o), 0)
}

// JoinOrigin numbers an origin of a process, 0 where nobody knows which. Where the interval
// has no room for one more, or the process has half of all origins, it is one with all such
// others: they have the common origin.
func (r *Registry) JoinOrigin(o span.Origin, process int32) (id OriginID, isCommon bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o = r.conflated(o)
	if id, ok := r.admitOrigin(o, process); ok {
		return id, false
	}
	return r.joinCommon(o), true
}

func (r *Registry) conflated(o span.Origin) span.Origin {
	if r.config.ConflateRuntimes {
		return o.Conflated()
	}
	return o
}

func (r *Registry) admitOrigin(o span.Origin, process int32) (OriginID, bool) {
	if id, known := r.originIDs[o]; known {
		return id, true
	}
	switch most := r.config.MaxOrigins; {
	case len(r.originIDs) >= most:
		return 0, false
	case process == 0:
	case r.ofProcess[process] >= max(1, most/2):
		return 0, false
	default:
		r.ofProcess[process]++
	}
	id := r.addOrigin(o, maphash.Comparable(seed, o))
	r.originIDs[o] = id
	return id, true
}

// joinCommon makes the common origin that of one more. It is what all of them have in common
// so far, so it is right for every cycle that they are counted in. A sealed cycle may be
// reading what it was before.
func (r *Registry) joinCommon(o span.Origin) OriginID {
	if r.common == noOrigin {
		r.common = r.addOrigin(o, 0)
		return r.common
	}
	if known := r.origins[r.common]; known != o {
		r.origins = slices.Clone(r.origins)
		r.origins[r.common] = known.Common(o)
	}
	return r.common
}

// identityOf is the identity of an origin, for who has no lock.
func (r *Registry) identityOf(origin OriginID) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.identities[origin]
}

// addOrigin adds an origin by its identity, a hash that is the same in every interval.
func (r *Registry) addOrigin(o span.Origin, identity uint64) OriginID {
	left := r.past.of(identity)
	r.origins = append(r.origins, o)
	r.identities = append(r.identities, identity)
	r.budgets.join(left)
	r.shares.join(left)
	return OriginID(len(r.origins) - 1)
}
