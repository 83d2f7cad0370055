package points

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// series tells the series of a cycle apart: the place of its resource, and two hashes of
// its attributes with seeds that nobody knows. That two series of a million share both
// has a chance of 2^-89.
type series struct {
	resource int32
	hashes   [2]uint64
}

// Group is the rows of one series. A cycle has several of a key: one a bucket, and one a
// mapping. Keys that differ only in what the dialect does not say are one series too.
type Group struct {
	Resource    int32 // of the cycle's, its place
	first, last int32 // places of rows
}

// grouper finds the rows of each series. It keeps no attribute, only hashes, because all
// of a cycle's attributes together would take as much memory as its names. What it keeps
// is reused for the next cycle.
type grouper struct {
	dialect   dialect
	seeds     [2]maphash.Seed
	written   attributes
	resources []string // encoded
	places    map[string]int32
	known     map[series]int32 // the place of a series in groups
	groups    []Group
	next      []int32 // of each row, the place of the next one in its group; -1 behind the last
}

func newGrouper(c *Config) grouper {
	return grouper{
		dialect: c.dialect(), written: attributes{labels: c.labels()},
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		places: map[string]int32{}, known: map[series]int32{},
	}
}

// service is what a resource is called: as its process is configured, or as its spans
// are, where it does not say.
func service(o *span.Origin, k *span.Key) string { return cmp.Or(o.Service, k.Service) }

// Group puts the rows of one series together, and the series of one resource, in the
// order in which the rows name them.
func (g *grouper) Group(sealed *aggregate.Sealed, rows []flush.Row) []Group {
	g.groups, g.next, g.resources = g.groups[:0], g.next[:0], g.resources[:0]
	clear(g.places)
	clear(g.known)
	resource := int32(-1)
	for i := range rows {
		r := &rows[i]
		origin, name := &sealed.Origins[r.Origin()], service(&sealed.Origins[r.Origin()], r.Key())
		if i == 0 || rows[i-1].Origin() != r.Origin() || origin.Service == "" {
			resource = g.resource(origin, name)
		}
		g.add(int32(i), g.series(resource, origin, r.Key()))
	}
	slices.SortStableFunc(g.groups, func(a, b Group) int { return cmp.Compare(a.Resource, b.Resource) })
	return g.groups
}

// Resource is that of a series, encoded.
func (g *grouper) Resource(of Group) string { return g.resources[of.Resource] }

// resource is the place of a resource. Two origins that differ only in what no attribute
// says are one.
func (g *grouper) resource(o *span.Origin, service string) int32 {
	g.written.bytes = g.written.bytes[:0]
	g.written.resource(o, service)
	place, known := g.places[string(g.written.bytes)]
	if !known {
		place = int32(len(g.resources))
		g.resources = append(g.resources, string(g.written.bytes))
		g.places[g.resources[place]] = place
	}
	return place
}

// series tells a key's series apart. Spans without an error have different outcomes where
// some are OK and some are not said to be, so one of those belongs to it.
func (g *grouper) series(resource int32, origin *span.Origin, k *span.Key) (s series) {
	g.written.bytes = g.written.bytes[:0]
	g.dialect.key(&g.written, origin, k)
	g.written.begin()
	g.dialect.outcome(&g.written, false, false)
	s.resource = resource
	for i, seed := range g.seeds {
		s.hashes[i] = maphash.Bytes(seed, g.written.bytes)
	}
	return s
}

func (g *grouper) add(row int32, s series) {
	g.next = append(g.next, -1)
	place, known := g.known[s]
	if !known {
		g.known[s] = int32(len(g.groups))
		g.groups = append(g.groups, Group{s.resource, row, row})
		return
	}
	in := &g.groups[place]
	g.next[in.last] = row
	in.last = row
}
