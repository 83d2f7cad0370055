package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// collapses adds up, over intervals and by name, the keys that lost a label: over its budget, or
// new where there was no row for a new key. It is what a person wants to know of a flood, and an
// approximate answer will do: a key that comes again from a connection's own table is not counted
// again, and beyond maxCollapses names the other tag keys stand under their list.
type collapses map[string]uint64 // by name of the label, or name of the list and tag key

// maxCollapses bounds the names, which tracers choose.
const maxCollapses = 256

// take adds what an interval has counted so far, and takes it from there.
func (c collapses) take(t *tables) {
	for kind := range t.lost {
		l := span.Label(kind)
		if kind >= span.LabelCount { // of the tag keys of a list
			l = span.FirstList + span.Label(kind-span.LabelCount)
		}
		c.add(l.String(), l.String(), t.lost[kind])
	}
	t.lost = [kinds]uint64{}
	for i := range t.labels.list {
		if l := &t.labels.list[i]; l.tags != nil && l.tags.lost > 0 {
			list := span.FirstList + span.Label(l.scope.kind-int32(span.LabelCount))
			c.add(list.String()+" "+l.text, list.String(), l.tags.lost)
			l.tags.lost = 0
		}
	}
}

func (c collapses) add(name, orElse string, keys uint64) {
	if keys == 0 {
		return
	}
	if _, known := c[name]; !known && len(c) >= maxCollapses {
		name = orElse
	}
	c[name] += keys
}

// most returns the name under which most keys stand, and forgets all.
func (c collapses) most() (name string, keys uint64) {
	for n, k := range c {
		if k > keys || k == keys && n < name {
			name, keys = n, k
		}
	}
	clear(c)
	return name, keys
}
