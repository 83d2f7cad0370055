package aggregate

import (
	"errors"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Group is what a tracer has counted itself of one key in one bucket.
type Group struct {
	Key     span.Key       // its labels may be parts of a buffer
	Bucket  int64          // as its tracer began it, nanoseconds since the Unix epoch
	Mapping sketch.Mapping // of its bins
	Counts
	OK, Errors sketch.Bins
}

// Why groups are not merged.
var (
	ErrOtherTime    = errors.New("merge groups: their time is none that can be kept exactly")
	ErrMappings     = errors.New("merge groups: the cycle holds sketches of too many mappings already")
	ErrNoMergedRoom = errors.New("merge groups: the cycle has no room for them")
)

// Merging is the exclusive right to add groups to the cycle that a publisher is inside.
type Merging struct {
	cycle *Cycle
	*Merged
}

// Merging waits for the right, which lasts until End.
func (c *Cycle) Merging() Merging {
	c.merged.mu.Lock()
	return Merging{c, c.merged}
}

// End gives the right back.
func (m Merging) End() { m.mu.Unlock() }

// Reserve makes room for all of these groups, or says why they can't be added. Then
// nothing has changed.
func (m Merging) Reserve(groups []Group, width uint64, now time.Time) error {
	if width != uint64(m.width) {
		return ErrOtherTime
	}
	mappings, bins := m.mappings, m.bins
	for i := range groups {
		g := &groups[i]
		if _, ok := m.bucketOf(g.Bucket, now.UnixNano()); !ok {
			return ErrOtherTime
		}
		if !slices.Contains(mappings, g.Mapping) {
			if mappings = append(mappings, g.Mapping); len(mappings) > sketch.MaxMappings {
				return ErrMappings
			}
		}
		bins += len(g.OK.List) + len(g.Errors.List)
	}
	if !m.reserve(len(m.rows)+len(groups), bins) {
		return ErrNoMergedRoom
	}
	m.mappings = mappings
	return nil
}

// Add admits the key of a group that there is room for, and adds what was counted.
func (m Merging) Add(origin registry.OriginID, g *Group) registry.LabelSet {
	mapping := slices.Index(m.mappings, g.Mapping)
	if mapping < 0 {
		panic("BUG: a group is added that no room was reserved for")
	}
	admission := m.cycle.Admit(origin, &g.Key)
	if g.Spans > 1 {
		admission = m.cycle.Admit(origin, &g.Key)
	}
	bucket, _ := m.bucketOf(g.Bucket, g.Bucket)
	row := m.row(mergedKey{admission.ID, sketch.MappingID(mapping), bucket})
	m.bins += row.ok.add(&g.OK) + row.errors.add(&g.Errors)
	row.Add(&g.Counts) // last: the books count what is in the rows
	m.held.Add(g.Spans)
	m.spans.Add(g.Spans)
	return admission.Collapsed
}
