package totals

import (
	"container/list"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
)

// Limits are the limits of Totals.
type Limits struct {
	Series  int           // current number
	Bytes   int           // encoded resources and attributes
	Idle    time.Duration // maximum time that a series exists without new spans
	MinIdle time.Duration // part of Idle in which it is not removed for a new series; at least the current cycle
	Buckets int           // buckets per exponential histogram
	Classic int           // maximum number of classic buckets per series

	// Overflow series, in addition: of resources, and one per metric of the common resource.
	Resources     int // maximum number of overflow series of resources
	ResourceBytes int // longest encoded resource, including the overflow attributes
	Metrics       int // number of metrics; 0 is 1
}

// OverflowSeries returns the maximum number of overflow series.
func (l *Limits) OverflowSeries() int { return l.Resources + max(l.Metrics, 1) }

// SeriesID identifies a series. It need not be valid longer than the call that it is passed to.
type SeriesID struct {
	Resource   []byte // encoded
	Metric     int    // number of the metric that the reader of the totals has given it
	Attributes []byte // encoded
}

// Series contains the running totals of one series.
type Series struct {
	Metric     int
	Attributes string // encoded
	Start      int64  // start of the first window in which it was counted
	Spans      uint64 // unit of the accounting
	Calls      uint64
	Errors     uint64 // part of Calls with an error
	Seconds    float64
	Buckets    sketch.Buckets
	Classic    []uint64 // by classic bucket

	UserData any // data for use by the reader of the totals

	resource     *Resource
	index        int           // index in Resource.Series
	cycle        uint64        // last cycle in which it was counted
	end          int64         // end of the window of that cycle
	settledSpans uint64        // part of Spans that is delivered or lost; not valid if all Spans are
	recent       *list.Element // element of Totals.recent
}

// key returns the key of the series in the map of its resource.
func (s *Series) key() seriesKey { return seriesKey{s.Metric, s.Attributes} }

// Resource contains the series of one resource.
type Resource struct {
	Encoded string
	Series  []*Series // unordered

	index  int // index in Totals.resources
	series map[seriesKey]*Series
}

// seriesKey identifies a series of a resource.
type seriesKey struct {
	metric     int
	attributes string // encoded
}

// Totals contains the running totals of a destination. See the package comment.
type Totals struct {
	limits             Limits
	overflowAttributes string // attributes of overflow series
	commonResource     string // resource of the spans whose own resource exceeds the limits

	resources []*Resource // resources with at least one series, unordered
	byEncoded map[string]*Resource
	recent    list.List // list of *Series; most recently counted first
	bytes     int       // encoded attributes and resources

	cycle                  uint64
	firstUndelivered       uint64 // first cycle with spans that are neither delivered nor lost
	windowStart, windowEnd int64  // window of the cycle
	overflowCount          int    // current number of overflow series
	counts                 Counts
}

// Counts counts series since New.
type Counts struct {
	Series     int    // current number
	Ended      uint64 // ended because they were idle or evicted
	Overflowed uint64 // spans, and values of measures, counted in an overflow series
}

// New returns empty totals. The spans of a series beyond the limits are counted in the overflow series of their
// resource, which has the attributes overflowAttributes. If the limits do not permit that series either, the spans are
// counted in the overflow series of commonResource.
func New(limits Limits, overflowAttributes, commonResource []byte) *Totals {
	return &Totals{
		limits:             limits,
		overflowAttributes: string(overflowAttributes),
		commonResource:     string(commonResource),
		byEncoded:          map[string]*Resource{},
	}
}

// Counts returns the counts of all cycles.
func (t *Totals) Counts() Counts {
	counts := t.counts
	counts.Series = t.recent.Len()
	return counts
}

// BeginCycle begins the cycle, or export interval, with the given number, and removes series that were idle for too
// long. start and end are its period, in nanoseconds since the Unix epoch. Numbers must ascend, and periods must not
// overlap. firstUndelivered is the number of the first cycle with spans that are neither delivered nor lost.
func (t *Totals) BeginCycle(cycle, firstUndelivered uint64, start, end int64) {
	t.cycle = cycle
	t.firstUndelivered = firstUndelivered
	t.windowStart = start
	t.windowEnd = end
	t.removeIdle()
}

// removeIdle removes the series that got no spans for at least Limits.Idle, least recently counted first. It stops
// at the first series that is not idle or has undelivered spans.
func (t *Totals) removeIdle() {
	for {
		s := t.leastRecent()
		if s == nil || !t.isIdle(s) {
			return
		}
		if t.Undelivered(s) > 0 {
			return
		}
		t.remove(s)
	}
}

// isIdle reports whether a series had no spans in the time Limits.Idle before the current cycle.
func (t *Totals) isIdle(s *Series) bool { return t.windowStart-s.end >= int64(t.limits.Idle) }

// Counted is the part of a series that one cycle has counted.
type Counted struct {
	Spans   uint64 // unit of the accounting
	Calls   uint64
	Errors  uint64 // part of Calls with an error
	Seconds float64
	Buckets *sketch.Buckets
	Classic []uint64 // not cumulative; Limits.Classic elements at most
}

// Add adds the counts of one export interval to the series with the given ID, and returns the series. If the series
// is new and would exceed the limits, Add uses an overflow series of its metric instead. Add retains none of its
// arguments.
func (t *Totals) Add(id SeriesID, counted Counted) *Series {
	s := t.findOrAdd(id)
	if s == nil {
		s = t.overflowSeries(id.Resource, id.Metric)
		t.counts.Overflowed += counted.Spans
	}
	t.count(s, counted)
	return s
}

// findOrAdd returns the series with the given ID. If there is none, it adds the series. It returns nil if the limits
// do not permit another series.
func (t *Totals) findOrAdd(id SeriesID) *Series {
	if s := t.find(id); s != nil {
		return s
	}
	hasRoom := t.makeRoom(id)
	if !hasRoom {
		return nil
	}
	return t.addSeries(id)
}

// count adds counts of the current cycle to a series.
func (t *Totals) count(s *Series, counted Counted) {
	if t.Undelivered(s) == 0 { // must precede the change of s.cycle
		s.settledSpans = s.Spans
	}
	s.Spans += counted.Spans
	s.Calls += counted.Calls
	s.Errors += counted.Errors
	s.Seconds += counted.Seconds
	s.Buckets.Add(counted.Buckets, t.limits.Buckets)
	if s.Classic == nil {
		s.Classic = make([]uint64, len(counted.Classic)) // all counts of a metric have as many buckets
	}
	for bucket, spans := range counted.Classic {
		s.Classic[bucket] += spans
	}
	s.cycle = t.cycle
	s.end = t.windowEnd
	t.recent.MoveToFront(s.recent)
}

// HasNewSpans reports whether counts were added to the series in the current cycle.
func (t *Totals) HasNewSpans(s *Series) bool { return s.cycle == t.cycle }

// Resources returns all resources that have a series. The caller must not modify them; they are
// valid until the next call.
func (t *Totals) Resources() []*Resource { return t.resources }

// overflowSeries returns the overflow series of a resource and a metric. It counts the spans for which the limits
// permit no other series. overflowSeries adds it if it does not exist. If the limits do not permit an overflow series
// for the resource, it returns the one of t.commonResource, which is always permitted.
func (t *Totals) overflowSeries(resource []byte, metric int) *Series {
	id := SeriesID{resource, metric, []byte(t.overflowAttributes)}
	s := t.find(id)
	if s == nil && !t.hasRoomForOverflow(resource) {
		id.Resource = []byte(t.commonResource)
		s = t.find(id)
	}
	if s == nil {
		t.overflowCount++
		s = t.addSeries(id)
	}
	return s
}

// hasRoomForOverflow reports whether the limits permit an overflow series for a resource that has none.
func (t *Totals) hasRoomForOverflow(resource []byte) bool {
	bytes := len(resource) + len(t.overflowAttributes)
	return bytes <= t.limits.ResourceBytes && t.overflowCount < t.limits.Resources
}

// Undelivered returns the number of spans of a series that are neither delivered nor lost. It returns 0 if all
// cycles in which the series was counted are before t.firstUndelivered.
func (t *Totals) Undelivered(s *Series) uint64 {
	if areAllSettled := s.cycle < t.firstUndelivered; areAllSettled {
		return 0
	}
	return s.Spans - s.settledSpans
}

// Abandon marks the undelivered spans of a series as lost, and returns their number.
func (t *Totals) Abandon(s *Series) (lost uint64) {
	lost = t.Undelivered(s)
	s.settledSpans = s.Spans
	return lost
}

// find returns the series with the given ID, or nil.
func (t *Totals) find(id SeriesID) *Series {
	if r := t.byEncoded[string(id.Resource)]; r != nil {
		return r.series[seriesKey{id.Metric, string(id.Attributes)}]
	}
	return nil
}

// leastRecent returns the least recently counted series, or nil if there are no series.
func (t *Totals) leastRecent() *Series {
	if last := t.recent.Back(); last != nil {
		return last.Value.(*Series)
	}
	return nil
}

// makeRoom removes series, least recently counted first, until the limits permit a new series with the given ID. It
// returns false if they do not permit it, because the next series is not removable.
func (t *Totals) makeRoom(id SeriesID) bool {
	for !t.hasRoom(id) {
		s := t.leastRecent()
		if s == nil || !t.isRemovable(s) {
			return false
		}
		t.remove(s)
	}
	return true
}

// isRemovable reports whether a series can be removed for a new one. It can't be if it has spans in the current cycle
// (export interval), had spans within the time Limits.MinIdle before the cycle, or has undelivered spans.
func (t *Totals) isRemovable(s *Series) bool {
	hadRecentSpans := t.windowStart-s.end < int64(t.limits.MinIdle)
	return !t.HasNewSpans(s) && !hadRecentSpans && t.Undelivered(s) == 0
}

// hasRoom reports whether the limits permit a new series with the given ID.
func (t *Totals) hasRoom(id SeriesID) bool {
	bytesWithSeries := t.bytes + len(id.Attributes)
	if isNewResource := t.byEncoded[string(id.Resource)] == nil; isNewResource {
		bytesWithSeries += len(id.Resource)
	}
	return t.recent.Len() < t.limits.Series && bytesWithSeries <= t.limits.Bytes
}

// addSeries adds a series, and its resource if that is new. It does not check the limits.
func (t *Totals) addSeries(id SeriesID) *Series {
	r := t.byEncoded[string(id.Resource)]
	if r == nil {
		r = t.addResource(id.Resource)
	}
	s := &Series{
		Metric:     id.Metric,
		Attributes: string(id.Attributes),
		Start:      t.windowStart,
		Buckets:    sketch.Buckets{Scale: sketch.MaxScale},
		resource:   r,
		index:      len(r.Series),
	}
	s.recent = t.recent.PushFront(s)
	r.series[s.key()] = s
	r.Series = append(r.Series, s)
	t.bytes += len(s.Attributes)
	return s
}

// addResource adds a resource without series.
func (t *Totals) addResource(encoded []byte) *Resource {
	r := &Resource{Encoded: string(encoded), index: len(t.resources), series: map[seriesKey]*Series{}}
	t.byEncoded[r.Encoded] = r
	t.resources = append(t.resources, r)
	t.bytes += len(r.Encoded)
	return r
}

// remove removes a series, and its resource if the resource has no other series.
func (t *Totals) remove(s *Series) {
	t.counts.Ended++
	if isOverflow := s.Attributes == t.overflowAttributes; isOverflow {
		t.overflowCount--
	}
	t.recent.Remove(s.recent)
	t.bytes -= len(s.Attributes)
	s.resource.remove(s)
	if len(s.resource.Series) == 0 {
		t.removeResource(s.resource)
	}
}

// remove removes a series from the resource. The list r.Series is unordered, so its last element moves to the index
// of the removed one.
func (r *Resource) remove(s *Series) {
	delete(r.series, s.key())
	lastIndex := len(r.Series) - 1
	last := r.Series[lastIndex]
	r.Series[s.index] = last
	last.index = s.index
	r.Series[lastIndex] = nil
	r.Series = r.Series[:lastIndex]
}

// removeResource removes a resource, which must have no series. The list t.resources is unordered, so its last
// element moves to the index of the removed one.
func (t *Totals) removeResource(r *Resource) {
	t.bytes -= len(r.Encoded)
	delete(t.byEncoded, r.Encoded)
	lastIndex := len(t.resources) - 1
	last := t.resources[lastIndex]
	t.resources[r.index] = last
	last.index = r.index
	t.resources[lastIndex] = nil
	t.resources = t.resources[:lastIndex]
}

const (
	// listBytes, mapBytes and referenceBytes are the memory of an element of a list, of a map of
	// strings and of a slice of pointers, both of which have just grown.
	listBytes      = 64
	mapBytes       = 96
	referenceBytes = 16
	// undeliveredBytes is the memory of a series in Payload.Undelivered: in queued payloads, in those
	// that replace them, and twice that, because slices grow by doubling.
	undeliveredBytes = 4 * counterBytes
	seriesBytes      = int(unsafe.Sizeof(Series{})) + listBytes + mapBytes + referenceBytes + undeliveredBytes
	resourceBytes    = int(unsafe.Sizeof(Resource{})) + emptyMapBytes + mapBytes + referenceBytes
	emptyMapBytes    = 512
	counterBytes     = 8
)

// Memory returns the maximum memory of Totals with these limits. It assumes that each series has a resource of its own.
func (l *Limits) Memory() int {
	overflowSeries := l.OverflowSeries()
	bytesPerSeries := seriesBytes + resourceBytes + (l.Buckets+l.Classic)*counterBytes
	return (l.Series+overflowSeries)*bytesPerSeries + l.Bytes + overflowSeries*l.ResourceBytes
}
