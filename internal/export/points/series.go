package points

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// seriesID identifies a series of a cycle by the indexes of its resource and its metric, and two hashes of its
// attributes with secret seeds. For a million series, the probability that any two share both
// hashes is 2^-89.
type seriesID struct {
	resource int32
	metric   int32
	hashes   [2]uint64
}

// Group contains the rows of one series. A key has several rows: one per bucket and mapping. Keys
// that differ only in fields that the dialect omits belong to one series, too.
type Group struct {
	Resource          int32 // index in grouper.resources
	metric            int32 // index in Reader.Metrics
	firstRow, lastRow int32 // indexes of rows; grouper.nextRow links the rows in between
}

// grouper groups the rows of a cycle by series. It stores hashes of attributes, because the
// attributes of all series together would take as much memory as the names of the cycle. Its memory
// is reused for the next cycle.
type grouper struct {
	dialect         dialect
	seeds           [2]maphash.Seed
	scratch         attributes         // attributes of the resource or series that is being identified
	resources       []string           // encoded
	resourceIndexes map[string]int32   // indexes in resources
	lastOrigin      *span.Origin       // last origin with a service that resourceOf was called with
	lastResource    int32              // result of that call
	groupIndexes    map[seriesID]int32 // indexes in groups
	groups          []Group
	nextRow         []int32 // by row, the index of the next row in the same group, or noRow
}

// noRow terminates the rows of a group.
const noRow = -1

func newGrouper(c *Config) grouper {
	return grouper{
		dialect: c.dialect(), scratch: attributes{format: c.format()},
		seeds:           [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		resourceIndexes: map[string]int32{}, groupIndexes: map[seriesID]int32{},
	}
}

// serviceName returns the service of a resource: that of the process or, if it has none, that of
// its spans.
func serviceName(o *span.Origin, k *span.Key) string { return cmp.Or(o.Service, k.Service) }

// GroupRows groups rows by metric series. A row contains the counts of one set of labels. GroupRows omits rows that
// belong to no metric of the dialect. It returns groups with the same resource one after the other. The result is valid
// until the next call.
func (g *grouper) GroupRows(sealed *aggregate.Sealed, rows []export.Row) []Group {
	g.reset(len(rows))
	for i := range rows {
		key := rows[i].Key()
		metric := g.dialect.metricOf(key)
		if metric == noMetric {
			continue
		}
		origin := &sealed.Origins[rows[i].Origin()]
		id := g.identifySeries(origin, key)
		id.metric = int32(metric)
		g.addRow(int32(i), id)
	}
	slices.SortStableFunc(g.groups, func(a, b Group) int { return cmp.Compare(a.Resource, b.Resource) })
	return g.groups
}

// resourceOf returns the resource of spans from the process o with the labels k, as an index in g.resources. The service
// of this resource is that of the process or, if the process has none, that of the spans.
func (g *grouper) resourceOf(o *span.Origin, k *span.Key) int32 {
	if o.Service == "" {
		return g.addResource(o, k.Service)
	}
	if o != g.lastOrigin { // otherwise the resource is that of the last call
		g.lastOrigin = o
		g.lastResource = g.addResource(o, o.Service)
	}
	return g.lastResource
}

// reset removes the groups of the previous cycle, but keeps their memory. The next cycle has the given number of rows,
// which are in no group yet.
func (g *grouper) reset(rowCount int) {
	g.groups = g.groups[:0]
	g.nextRow = g.nextRow[:0]
	for range rowCount {
		g.nextRow = append(g.nextRow, noRow)
	}
	g.resources = g.resources[:0]
	clear(g.resourceIndexes)
	clear(g.groupIndexes)
	g.lastOrigin = nil
}

// Resource returns the encoded resource of a group.
func (g *grouper) Resource(group Group) string { return g.resources[group.Resource] }

// addResource returns the index in g.resources of the resource for a service in the process o. It adds the resource
// if g.resources does not contain it yet.
func (g *grouper) addResource(o *span.Origin, service string) int32 {
	g.scratch.bytes = g.scratch.bytes[:0]
	g.dialect.writeResource(&g.scratch, o, service)
	encoded := g.scratch.bytes
	if index, isKnown := g.resourceIndexes[string(encoded)]; isKnown {
		return index
	}
	index := int32(len(g.resources))
	resource := string(encoded)
	g.resources = append(g.resources, resource)
	g.resourceIndexes[resource] = index
	return index
}

// identifySeries returns an ID for the series that spans with the labels in k belong to, without its metric: the index
// of its resource, and hashes of its attributes. The hashes include the status of spans without an error, which is OK
// or unset, because label sets that differ only in this status are different series.
func (g *grouper) identifySeries(origin *span.Origin, k *span.Key) seriesID {
	resource := g.resourceOf(origin, k)
	g.scratch.bytes = g.scratch.bytes[:0]
	g.dialect.writeKey(&g.scratch, origin, k)
	g.scratch.releaseNames() // permits the attributes of the status, whose names writeKey has reserved
	withoutError := status{isOK: g.dialect.isOK(origin, k)}
	g.dialect.writeStatus(&g.scratch, withoutError)
	id := seriesID{resource: resource}
	for i, seed := range g.seeds {
		id.hashes[i] = maphash.Bytes(seed, g.scratch.bytes)
	}
	return id
}

// addRow adds the row with the index row to the series with the given ID. It creates a group for the series if there
// is none. The rows of a group are a linked list: g.nextRow[i] is the row after row i. Rows must be added in the
// order of their indexes.
func (g *grouper) addRow(row int32, id seriesID) {
	index, isKnown := g.groupIndexes[id]
	if !isKnown {
		g.groupIndexes[id] = int32(len(g.groups))
		g.groups = append(g.groups, Group{Resource: id.resource, metric: id.metric, firstRow: row, lastRow: row})
		return
	}
	group := &g.groups[index]
	g.nextRow[group.lastRow] = row
	group.lastRow = row
}

// rowsOf iterates over the rows of a group. rows are those that were given to GroupRows.
func (g *grouper) rowsOf(group Group, rows []export.Row) iter.Seq[*export.Row] {
	return func(yield func(*export.Row) bool) {
		for i := group.firstRow; i != noRow; i = g.nextRow[i] {
			if !yield(&rows[i]) {
				return
			}
		}
	}
}

// Point contains the spans of a series with the same status.
type Point struct {
	Metric     int    // index in Reader.Metrics
	Attributes []byte // encoded
	Calls      uint64
	Errors     uint64 // part of Calls with an error
	Seconds    float64
	Durations  sketch.Buckets
	Classic    []uint64           // spans by classic bucket; nil without bounds
	Exemplar   exemplars.Exemplar // missing if its Span is 0
}

// setCounts sets p.Calls, p.Durations and p.Seconds. weights is the sum of the weights of the spans: a sampled span of
// weight 10 stands for 10 calls. weightedNanos is the sum of the durations, each multiplied by its weight.
func (p *Point) setCounts(h *sketch.Histogram, weights, weightedNanos float64) {
	p.Calls = export.RoundRandomly(weights, math.MaxInt64) // weights can be fractions
	p.Durations = h.Buckets(sketch.DefaultMaxBuckets)
	spans := float64(p.Durations.Spans)
	if spans == 0 {
		return
	}
	// The sum of a histogram divided by its count must be the mean duration. p.Durations counts each span once, without
	// its weight, so the sum must not be weighted either.
	nanoseconds := weightedNanos
	if averageWeight := weights / spans; averageWeight > 0 {
		nanoseconds /= averageWeight
	}
	p.Seconds = max(0, nanoseconds) / 1e9
}

// isEmpty reports whether the point has no spans.
func (p *Point) isEmpty() bool { return p.Durations.Spans == 0 && p.Calls == 0 }

// Reader converts the rows of a cycle to points. See the package comment.
type Reader struct {
	grouper
	exemplars  exemplars.Sealed // exemplars of the cycle
	start, end int64            // window of the cycle, nanoseconds since the Unix epoch
	metrics    []Metric

	// Memory that is reused for each series: its attributes, and those for the status of its spans.
	keyAttributes, succeededStatus, failedStatus attributes

	// Memory that is reused for each point.
	point           Point
	pointAttributes []byte
	histogram       sketch.Histogram
	classic         []*sketch.Classic // the same durations in the classic buckets of each metric; nil without bounds
}

// NewReader returns a Reader.
func NewReader(c Config) *Reader {
	list := attributes{format: c.format()}
	r := &Reader{grouper: newGrouper(&c), keyAttributes: list, succeededStatus: list, failedStatus: list}
	for _, metric := range r.dialect.metrics() {
		var classic *sketch.Classic
		switch {
		case len(c.Bounds) == 0:
			metric.Bounds = nil
		case metric.Bounds == nil:
			metric.Bounds = c.Bounds
		}
		if metric.Bounds != nil {
			classic = sketch.NewClassic(metric.Bounds)
		}
		r.metrics = append(r.metrics, metric)
		r.classic = append(r.classic, classic)
	}
	return r
}

// BeginCycle sets the exemplars of a cycle, and its window in nanoseconds since the Unix epoch.
func (r *Reader) BeginCycle(e exemplars.Sealed, start, end int64) {
	r.exemplars = e
	r.start = start
	r.end = end
}

// Metrics returns the metrics that points belong to.
func (r *Reader) Metrics() []Metric { return r.metrics }

// Bounds returns the bounds of the classic buckets of all metrics, sorted and without duplicates. It returns nil
// without classic buckets.
func (r *Reader) Bounds() (bounds []float64) {
	for _, metric := range r.metrics {
		bounds = append(bounds, metric.Bounds...)
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// Counts contains the counters of a series, added up over its rows.
type Counts struct {
	aggregate.Counts
	errorDuration float64 // part of Duration that spans with an error took
	Values        uint64  // number of values, if the series is that of a measure
}

// SumRows returns the counters of the series g, added up over its rows.
func (r *Reader) SumRows(rows []export.Row, g Group) (sum Counts) {
	for row := range r.rowsOf(g, rows) {
		sum.Add(&row.Counts)
		sum.errorDuration += row.ErrorDuration()
		sum.Values += row.Values()
	}
	return sum
}

// areAllTopLevel reports whether all spans of the series are top-level.
func (c *Counts) areAllTopLevel() bool { return c.Hits > 0 && c.TopLevel >= c.Hits }

// VisitPoints calls visit for each data point of the series g: one for the spans without an error, and one for those
// with an error. If the dialect has no attribute for the status, there is only one point, for all spans. VisitPoints
// omits a point without spans. sum contains the counts of the series, which SumRows returns. A point is valid until
// visit returns.
func (r *Reader) VisitPoints(
	sealed *aggregate.Sealed, rows []export.Row, g Group, sum *Counts, visit func(*Point),
) {
	firstRow := &rows[g.firstRow] // all rows of the series have the same attributes
	origin := &sealed.Origins[firstRow.Origin()]
	common, ofSucceeded, ofFailed := r.encodeAttributes(origin, firstRow.Key(), sum.areAllTopLevel())
	visitPoint := func(which selection, statusAttributes []byte) {
		p := r.readPoint(rows, g, sum, which)
		if p.isEmpty() {
			return
		}
		r.pointAttributes = append(r.pointAttributes[:0], common...)
		r.pointAttributes = append(r.pointAttributes, statusAttributes...)
		p.Attributes = r.pointAttributes
		visit(p)
	}
	hasNoStatus := bytes.Equal(ofSucceeded, ofFailed)
	if hasNoStatus { // all spans have the same attributes
		visitPoint(allSpans, ofSucceeded)
		return
	}
	visitPoint(succeeded, ofSucceeded)
	visitPoint(failed, ofFailed)
}

// encodeAttributes returns three encoded lists: the attributes of all spans of a key, the further attributes of spans
// without an error, and those of spans with an error. areTopLevel is true if all spans are top-level. The results are
// valid until the next call.
func (r *Reader) encodeAttributes(o *span.Origin, k *span.Key, areTopLevel bool) (common, ofSucceeded, ofFailed []byte) {
	r.keyAttributes.bytes = r.keyAttributes.bytes[:0]
	r.dialect.writeKey(&r.keyAttributes, o, k)
	isOK := r.dialect.isOK(o, k)
	r.encodeStatus(&r.succeededStatus, status{isOK: isOK, isTopLevel: areTopLevel})
	r.encodeStatus(&r.failedStatus, status{isError: true, isOK: isOK, isTopLevel: areTopLevel})
	return r.keyAttributes.bytes, r.succeededStatus.bytes, r.failedStatus.bytes
}

// encodeStatus sets list to the attributes for a status of spans of the key that writeKey has written last.
func (r *Reader) encodeStatus(list *attributes, s status) {
	list.bytes = list.bytes[:0]
	list.beginList()
	r.dialect.writeStatus(list, s)
}

// selection selects spans of a series by their status.
type selection int

const (
	succeeded selection = iota // spans without an error
	failed                     // spans with an error
	allSpans
)

func (s selection) includesSucceeded() bool { return s == succeeded || s == allSpans }
func (s selection) includesFailed() bool    { return s == failed || s == allSpans }

// readPoint returns the data point of the selected spans in the series g. It does not set the attributes. sum contains
// the counts of all spans of the series. The point is valid until the next call.
func (r *Reader) readPoint(rows []export.Row, g Group, sum *Counts, which selection) *Point {
	r.histogram.Reset()
	r.addDurations(&r.histogram, rows, g, which)
	r.point = Point{Metric: int(g.metric), Exemplar: r.slowestExemplar(rows, g, which)}
	switch which {
	case succeeded:
		r.point.setCounts(&r.histogram, sum.Hits-sum.Errors, sum.Duration-sum.errorDuration)
	case failed:
		r.point.setCounts(&r.histogram, sum.Errors, sum.errorDuration)
		r.point.Errors = r.point.Calls
	case allSpans:
		r.point.setCounts(&r.histogram, sum.Hits, sum.Duration)
		errors := export.RoundRandomly(sum.Errors, math.MaxInt64)
		r.point.Errors = min(errors, r.point.Calls) // Calls can have been rounded down, and Errors up
	}
	if classic := r.classic[g.metric]; classic != nil {
		classic.Reset()
		r.addDurations(classic, rows, g, which)
		r.point.Classic = classic.Counts()
	}
	return &r.point
}

// addDurations adds the durations of the selected spans in the series g to a histogram.
func (r *Reader) addDurations(histogram sketch.Sum, rows []export.Row, g Group, which selection) {
	for row := range r.rowsOf(g, rows) {
		if which.includesSucceeded() {
			row.ReadOK(histogram)
		}
		if which.includesFailed() {
			row.ReadErrors(histogram)
		}
	}
}

// slowestExemplar returns the exemplar with the longest duration among the selected spans in the series g. If there is
// no exemplar, the result has the Span 0.
func (r *Reader) slowestExemplar(rows []export.Row, g Group, which selection) (slowest exemplars.Exemplar) {
	const withoutError, withError = false, true
	for row := range r.rowsOf(g, rows) {
		keyID := uint32(row.KeyID())
		if which.includesSucceeded() {
			slowest = slower(slowest, r.exemplars.Find(keyID, withoutError))
		}
		if which.includesFailed() {
			slowest = slower(slowest, r.exemplars.Find(keyID, withError))
		}
	}
	if slowest.Span != 0 {
		slowest.End = r.clampTime(slowest.End)
	}
	return slowest
}

// clampTime returns the time in the current export interval that is closest to the end of a span. A late span, or one
// whose clock is ahead, has not ended in this interval. Prometheus would reject its exemplar, or the next one of the
// series, because the times of exemplars must ascend.
func (r *Reader) clampTime(end int64) int64 {
	// r.start belongs to the previous interval. Prometheus has a resolution of one millisecond.
	earliest := r.start + int64(time.Millisecond)
	return min(max(end, earliest), r.end)
}

// slower returns the slower one of two exemplars, either of which can be missing.
func slower(a, b exemplars.Exemplar) exemplars.Exemplar {
	if isMissing := a.Span == 0; isMissing || b.Duration > a.Duration {
		return b
	}
	return a
}
