package points

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// series identifies a series of a cycle by the index of its resource and two hashes of its
// attributes with secret seeds. For a million series, the probability that any two share both
// hashes is 2^-89.
type series struct {
	resource int32
	hashes   [2]uint64
}

// Group contains the rows of one series. A key has several rows: one per bucket and mapping. Keys
// that differ only in fields that the dialect omits belong to one series, too.
type Group struct {
	Resource    int32 // index in grouper.resources
	first, last int32 // indexes of the first and last row; grouper.next links the rows in between
}

// grouper groups the rows of a cycle by series. It stores hashes of attributes, because the
// attributes of all series together would take as much memory as the names of the cycle. Its memory
// is reused for the next cycle.
type grouper struct {
	dialect         dialect
	seeds           [2]maphash.Seed
	buffer          attributes
	resources       []string         // encoded
	resourceIndexes map[string]int32 // indexes of resources
	groupIndexes    map[series]int32 // indexes of groups
	groups          []Group
	next            []int32 // by row, the index of the next row in the same group, or -1
}

func newGrouper(c *Config) grouper {
	return grouper{
		dialect: c.dialect(), buffer: attributes{format: c.format()},
		seeds:           [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		resourceIndexes: map[string]int32{}, groupIndexes: map[series]int32{},
	}
}

// serviceName returns the service of a resource: that of the process or, if it has none, that of
// its spans.
func serviceName(o *span.Origin, k *span.Key) string { return cmp.Or(o.Service, k.Service) }

// Group groups the rows of a cycle by series. The series of one resource are adjacent.
func (g *grouper) Group(sealed *aggregate.Sealed, rows []export.Row) []Group {
	g.groups, g.next, g.resources = g.groups[:0], g.next[:0], g.resources[:0]
	clear(g.resourceIndexes)
	clear(g.groupIndexes)
	resource, resourceOrigin := int32(-1), (*span.Origin)(nil)
	for i := range rows {
		r := &rows[i]
		if !g.dialect.includes(r.Key()) {
			g.next = append(g.next, -1)
			continue
		}
		origin := &sealed.Origins[r.Origin()]
		name := serviceName(origin, r.Key())
		if resourceOrigin != origin || origin.Service == "" {
			resource, resourceOrigin = g.resource(origin, name), origin
		}
		g.add(int32(i), g.series(resource, origin, r.Key()))
	}
	slices.SortStableFunc(g.groups, func(a, b Group) int { return cmp.Compare(a.Resource, b.Resource) })
	return g.groups
}

// Resource returns the encoded resource of a group.
func (g *grouper) Resource(group Group) string { return g.resources[group.Resource] }

// resource returns the index of a resource. Origins with the same attributes share one.
func (g *grouper) resource(o *span.Origin, service string) int32 {
	g.buffer.bytes = g.buffer.bytes[:0]
	g.dialect.resource(&g.buffer, o, service)
	index, known := g.resourceIndexes[string(g.buffer.bytes)]
	if !known {
		index = int32(len(g.resources))
		g.resources = append(g.resources, string(g.buffer.bytes))
		g.resourceIndexes[g.resources[index]] = index
	}
	return index
}

// series returns the series of a key. The status of spans without an error, OK or unset, is part of
// it, because two keys can differ in nothing else.
func (g *grouper) series(resource int32, origin *span.Origin, k *span.Key) (s series) {
	g.buffer.bytes = g.buffer.bytes[:0]
	isOK := g.dialect.key(&g.buffer, origin, k)
	g.buffer.begin()
	g.dialect.outcome(&g.buffer, outcome{isOK: isOK})
	s.resource = resource
	for i, seed := range g.seeds {
		s.hashes[i] = maphash.Bytes(seed, g.buffer.bytes)
	}
	return s
}

// add adds a row to the group of its series.
func (g *grouper) add(row int32, s series) {
	g.next = append(g.next, -1)
	index, known := g.groupIndexes[s]
	if !known {
		g.groupIndexes[s] = int32(len(g.groups))
		g.groups = append(g.groups, Group{s.resource, row, row})
		return
	}
	group := &g.groups[index]
	g.next[group.last] = row
	group.last = row
}

// Point contains the spans of a series with the same outcome.
type Point struct {
	Attributes []byte // encoded
	Calls      uint64
	Errors     uint64 // part of Calls with an error
	Seconds    float64
	Durations  sketch.Buckets
	Classic    []uint64           // spans by classic bucket; nil without bounds
	Exemplar   exemplars.Exemplar // missing if its Span is 0
}

// count sets the counts of a point, and reports whether the point has any spans. The histogram
// contains each span once. hits is the sum of the spans' weights, and nanoseconds the sum of their
// durations, each multiplied by its weight. Points have no weights, so count scales nanoseconds by
// the number of spans per hit.
func (p *Point) count(h *sketch.Histogram, hits, nanoseconds float64) bool {
	p.Calls, p.Durations = export.RoundRandomly(hits, math.MaxInt64), h.Buckets(sketch.DefaultMaxBuckets)
	if spans := float64(p.Durations.Spans); hits > 0 && hits != spans {
		nanoseconds *= spans / hits
	}
	if p.Durations.Spans > 0 {
		p.Seconds = max(0, nanoseconds) / 1e9
	}
	return p.Durations.Spans > 0 || p.Calls > 0
}

// Reader converts the rows of a cycle to points. See the package comment.
type Reader struct {
	grouper
	exemplars  exemplars.Sealed // exemplars of the cycle
	start, end int64            // window of the cycle, nanoseconds since the Unix epoch
	list       attributes       // attributes of the current point
	point      Point            // current point
	histogram  sketch.Histogram // adds up the rows of a series; empty between uses
	classic    *sketch.Classic  // the same with classic buckets; nil without bounds
	sums       []sketch.Sum     // &histogram, and classic if not nil
}

// NewReader returns a Reader.
func NewReader(c Config) *Reader {
	r := &Reader{grouper: newGrouper(&c)}
	r.list.format, r.sums = r.buffer.format, []sketch.Sum{&r.histogram}
	if len(c.Bounds) > 0 {
		r.classic = sketch.NewClassic(c.Bounds)
		r.sums = append(r.sums, r.classic)
	}
	return r
}

// Begin sets the exemplars of a cycle, and its window in nanoseconds since the Unix epoch.
func (r *Reader) Begin(e exemplars.Sealed, start, end int64) {
	r.exemplars, r.start, r.end = e, start, end
}

// Metrics returns the names of the metrics for calls and durations. If the first is empty, the
// dialect has no metric for calls; the count of the durations is the number of calls.
func (r *Reader) Metrics() (calls, durations string) { return r.dialect.metrics() }

// Counts contains the sums of a series.
type Counts struct {
	aggregate.Counts
	errorDuration float64 // part of Duration that spans with an error took
}

// Total adds up the rows of a series.
func (r *Reader) Total(rows []export.Row, g Group) (total Counts) {
	for i := g.first; i >= 0; i = r.next[i] {
		total.Add(&rows[i].Counts)
		total.errorDuration += rows[i].ErrorDuration()
	}
	return total
}

// VisitPoints calls visit for the point of a series with the spans without an error, and for the point
// with the spans with an error, unless they are empty. A point is valid until visit returns.
func (r *Reader) VisitPoints(
	sealed *aggregate.Sealed, rows []export.Row, g Group, total *Counts, visit func(*Point),
) {
	r.list.bytes = r.list.bytes[:0]
	isOK := r.dialect.key(&r.list, &sealed.Origins[rows[g.first].Origin()], rows[g.first].Key())
	keyLength := len(r.list.bytes)
	isTopLevel := total.Hits > 0 && total.TopLevel >= total.Hits
	for _, isError := range [...]bool{false, true} {
		hits, duration := total.Hits-total.Errors, total.Duration-total.errorDuration
		if isError {
			hits, duration = total.Errors, total.errorDuration
		}
		p := &r.point
		*p = Point{Exemplar: r.read(rows, g, isError)}
		if r.classic != nil {
			p.Classic = r.classic.Counts()
		}
		if p.count(&r.histogram, hits, duration) {
			if isError {
				p.Errors = p.Calls
			}
			r.list.bytes = r.list.bytes[:keyLength]
			r.list.begin()
			r.dialect.outcome(&r.list, outcome{isError, isOK, isTopLevel})
			p.Attributes = r.list.bytes
			visit(p)
		}
		r.histogram.Reset()
		if r.classic != nil {
			r.classic.Reset()
		}
	}
}

// read adds the spans of a series with one outcome to the histograms, and returns the slowest
// exemplar of its keys.
func (r *Reader) read(rows []export.Row, g Group, isError bool) (slowest exemplars.Exemplar) {
	for i := g.first; i >= 0; i = r.next[i] {
		for _, sum := range r.sums {
			if isError {
				rows[i].ReadErrors(sum)
			} else {
				rows[i].ReadOK(sum)
			}
		}
		slowest = slower(slowest, r.exemplars.Of(uint32(rows[i].KeyID()), isError))
	}
	if slowest.Span != 0 {
		slowest.End = clamp(slowest.End, r.start, r.end)
	}
	return slowest
}

// clamp moves the time of an exemplar into the window of the cycle that counted it, because
// Prometheus rejects an exemplar that is older than the last one of the same series. Without clamp,
// a late span, or one whose clock is ahead, could cause that. The window excludes its start by one
// millisecond, the resolution of Prometheus.
func clamp(t, start, end int64) int64 {
	return min(max(t, start+int64(time.Millisecond)), end)
}

// slower returns the slower one of two exemplars, either of which can be missing.
func slower(a, b exemplars.Exemplar) exemplars.Exemplar {
	if a.Span == 0 || b.Duration > a.Duration {
		return b
	}
	return a
}
