package registry

import (
	"hash/maphash"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// tables are all that is known in one interval.
type tables struct {
	config  *Config
	origins originTable
	labels  labelTable
	rows    rowTable
	shares  shares
	past    *past                    // what the last interval has left
	lost    [kinds]uint64            // keys that lost a label, by kind of scope; or see tagKey
	masked  *[span.LabelCount]uint64 // keys with a masked label, of all intervals

	seen       *bloomFilter // what came and got no place, of this interval and the last
	generation generation   // this interval's
}

// begin makes the tables those of a new interval.
func (t *tables) begin(past *past) {
	t.origins = newOriginTable(t.config.MaxOrigins, past)
	t.labels, t.rows = newLabelTable(), newRowTable()
	t.past, t.shares, t.lost = past, newShares(t.config.shared(), t.config.reserve(), past), [kinds]uint64{}
	t.seen.clear(t.generation)
}

// admitOrigin numbers an origin of a process, 0 where nobody knows which. It reports false
// where there is no place for one more, or the process has half of all.
func (t *tables) admitOrigin(o span.Origin, process int32) (OriginID, bool) {
	if id, known := t.origins.ids[o]; known {
		return id, true
	}
	identity := maphash.Comparable(seed, o)
	known := t.familiarityOfOrigin(identity)
	if known < t.origins.gate(o) || process != 0 && !t.origins.mayHaveMore(process, o) {
		t.seen.add(t.generation, identity)
		return 0, false
	}
	t.origins.places.take(known)
	if process != 0 {
		t.origins.ofProcess[process]++
	}
	id := t.addOrigin(o, identity)
	t.origins.ids[o] = id
	return id, true
}

// familiarityOfOrigin is how well an origin is known.
func (t *tables) familiarityOfOrigin(identity uint64) familiarity {
	came := t.seen.has(identity)
	switch left, isNew := t.past.of(identity); {
	case left.hasStayed:
		return repeated
	case !isNew, came[t.generation.other()]:
		return cameBefore
	case came[t.generation]:
		return cameAgain
	}
	return unknown
}

// joinCommon makes the common origin that of one more. It is what all of them have in common
// so far, so it is right for every cycle that they are counted in. A sealed cycle may be
// reading what it was before.
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
	left, isNew := t.past.of(identity)
	added := origin{identity: identity, isNew: isNew}
	for kind := range added.budgets {
		limit := MaxTagKeys
		if kind < span.LabelCount {
			limit = t.config.Budgets[kind]
		}
		added.budgets[kind] = budget{limit: limit, kept: left.values[kind]}
	}
	t.origins.names = append(t.origins.names, name)
	t.origins.list = append(t.origins.list, added)
	t.shares.join(left)
	return OriginID(len(t.origins.list) - 1)
}

// nameless is the one row of an origin for all that has lost its whole key: hits, errors
// and durations survive under the origin, the labels do not.
func (t *tables) nameless(id OriginID) Admission {
	o := &t.origins.list[id]
	if o.overflow.Collapsed == 0 {
		row := t.rows.addNameless(KeyEntry{Origin: id, Key: overflowKey})
		o.overflow = Admission{ID: row, Hash: uint32(o.identity), Collapsed: setOf(span.WholeKey)}
	}
	return o.overflow
}

// overflowKey has every label collapsed, as the tracers do it: the three-valued
// and boolean ones are those of a span that says nothing.
var overflowKey = func() (k span.Key) {
	for l := range span.FirstList {
		*k.Text(l) = span.Blocked
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		*k.Tags(l) = []string{span.Blocked}
	}
	return k
}()
