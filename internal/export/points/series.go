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

// series identifies a series of a cycle: the position of its resource, and two hashes of its attributes
// with secret seeds. The chance that two series of a million share both is 2^-89.
type series struct {
	resource int32
	hashes   [2]uint64
}

// Group is the rows of one series. A key has several rows: one per bucket and mapping. Keys that differ
// only in fields that the dialect leaves out are one series too.
type Group struct {
	Resource    int32 // of the cycle's, its place
	first, last int32 // places of rows
}

// grouper finds the rows of each series. It keeps hashes of attributes, because all attributes of a cycle
// together would take as much memory as its names. Its memory is reused for the next cycle.
type grouper struct {
	dialect   dialect
	seeds     [2]maphash.Seed
	written   attributes
	resources []string // encoded
	places    map[string]int32
	known     map[series]int32 // the place of a series in groups
	groups    []Group
	next      []int32 // of each row, the place of the next one in its group; -1 after the last
}

func newGrouper(c *Config) grouper {
	return grouper{
		dialect: c.dialect(), written: attributes{format: c.format()},
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		places: map[string]int32{}, known: map[series]int32{},
	}
}

// service is the name of a resource: that of the process, or that of its spans if it has none.
func service(o *span.Origin, k *span.Key) string { return cmp.Or(o.Service, k.Service) }

// Group returns the rows of each series, with the series of one resource together.
func (g *grouper) Group(sealed *aggregate.Sealed, rows []export.Row) []Group {
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

// resource is the position of a resource. Two origins with the same attributes are one.
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

// series identifies a key's series. Two keys can differ in nothing except that the spans of one have the
// status OK, so the outcome of spans without an error is a part of it.
func (g *grouper) series(resource int32, origin *span.Origin, k *span.Key) (s series) {
	g.written.bytes = g.written.bytes[:0]
	isOK := g.dialect.key(&g.written, origin, k)
	g.written.begin()
	g.dialect.outcome(&g.written, outcome{isOK: isOK})
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

// Point has the spans of a series with one outcome.
type Point struct {
	Attributes []byte // encoded
	Calls      uint64
	Seconds    float64
	Durations  sketch.Buckets
	Classic    []uint64           // spans by classic bucket; nil without bounds
	Exemplar   exemplars.Exemplar // none where its Span is 0
}

// count fills a point from a histogram, which has each span once. The sum of durations has it as often as
// it weighs, so it is scaled to the spans, which changes nothing if each span has a weight of one. It
// reports whether there were any spans.
func (p *Point) count(h *sketch.Histogram, hits, nanoseconds float64) bool {
	p.Calls, p.Durations = export.Whole(hits, math.MaxInt64), h.Buckets(sketch.DefaultMaxBuckets)
	if spans := float64(p.Durations.Spans); hits > 0 && hits != spans {
		nanoseconds *= spans / hits
	}
	if p.Durations.Spans > 0 {
		p.Seconds = max(0, nanoseconds) / 1e9
	}
	return p.Durations.Spans > 0 || p.Calls > 0
}

// Reader makes points of the rows of a cycle. See the package comment.
type Reader struct {
	grouper
	exemplars  exemplars.Sealed // of the cycle
	start, end int64            // window of the cycle, nanoseconds since the Unix epoch
	list       attributes       // of the point that is being made
	point      Point            // that is being made
	histogram  sketch.Histogram // in which the rows of a series are added up; empty in between
	classic    *sketch.Classic  // the same by bounds, nil where there are none
	sums       []sketch.Sum     // both
}

// NewReader makes one.
func NewReader(c Config) *Reader {
	r := &Reader{grouper: newGrouper(&c)}
	r.list.format, r.sums = r.written.format, []sketch.Sum{&r.histogram}
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

// Metrics are the names of the metrics for calls and durations. If the first is empty, the count of
// durations is that of calls.
func (r *Reader) Metrics() (calls, durations string) { return r.dialect.metrics() }

// Counts has the sums of a series.
type Counts struct {
	aggregate.Counts
	errorDuration float64 // the part of Duration that spans with an error took
}

// Total adds up the rows of a series.
func (r *Reader) Total(rows []export.Row, g Group) (total Counts) {
	for i := g.first; i >= 0; i = r.next[i] {
		total.Add(&rows[i].Counts)
		total.errorDuration += rows[i].ErrorDuration()
	}
	return total
}

// Outcomes visits the point of a series for spans without an error, and the one for spans with an error, if
// there are any. A point is valid until the next.
func (r *Reader) Outcomes(
	sealed *aggregate.Sealed, rows []export.Row, g Group, total *Counts, visit func(*Point),
) {
	r.list.bytes = r.list.bytes[:0]
	isOK := r.dialect.key(&r.list, &sealed.Origins[rows[g.first].Origin()], rows[g.first].Key())
	ofKey := len(r.list.bytes)
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
			r.list.bytes = r.list.bytes[:ofKey]
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

// read adds the spans of a series with one outcome to the histograms, and returns the slowest exemplar of
// its keys.
func (r *Reader) read(rows []export.Row, g Group, isError bool) (slowest exemplars.Exemplar) {
	for i := g.first; i >= 0; i = r.next[i] {
		for _, to := range r.sums {
			if isError {
				rows[i].ReadErrors(to)
			} else {
				rows[i].ReadOK(to)
			}
		}
		slowest = slower(slowest, r.exemplars.Of(uint32(rows[i].KeyID()), isError))
	}
	if slowest.Span != 0 {
		slowest.End = clamp(slowest.End, r.start, r.end)
	}
	return slowest
}

// clamp moves the time of an exemplar into the window of the cycle that counted it. Its span may be late, or have
// the time of an SDK whose clock is ahead, and Prometheus refuses every exemplar that is older than the last one of
// its series. The window excludes its start, as in OTLP, by the millisecond that is the resolution of Prometheus.
func clamp(t, start, end int64) int64 {
	return min(max(t, start+int64(time.Millisecond)), end)
}

// slower is the slower of two exemplars, if there are any.
func slower(a, b exemplars.Exemplar) exemplars.Exemplar {
	if a.Span == 0 || b.Duration > a.Duration {
		return b
	}
	return a
}
