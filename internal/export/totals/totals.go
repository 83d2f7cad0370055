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
	Idle    time.Duration // how long a series exists without new spans
	Buckets int           // buckets per exponential histogram
	Classic int           // classic buckets per series; 0 disables them

	// Overflow series, in addition: one per resource, and one of the common resource.
	Resources     int // maximum number of resources with an overflow series
	ResourceBytes int // longest encoded resource, including the overflow attributes
}

// Series contains the running totals of one series.
type Series struct {
	Attributes string // encoded
	Start      int64  // start of the first window in which it was counted
	Spans      uint64 // unit of the accounting
	Calls      uint64
	Errors     uint64 // part of Calls with an error
	Seconds    float64
	Buckets    sketch.Buckets
	Classic    []uint64 // by classic bucket

	Note any // for use by the reader of the totals

	resource *Resource
	index    int           // index in Resource.Series
	cycle    uint64        // last cycle in which it was counted
	end      int64         // end of the window of that cycle
	settled  uint64        // part of Spans that is delivered or lost, if cycle is not settled
	recent   *list.Element // element of Totals.recent
}

// Resource contains the series of one resource.
type Resource struct {
	Encoded string
	Series  []*Series // unordered

	index        int // index in Totals.resources
	byAttributes map[string]*Series
}

// Totals contains the running totals of a destination. See the package comment.
type Totals struct {
	limits    Limits
	overflow  string      // attributes of overflow series
	common    string      // resource of the common overflow series
	resources []*Resource // resources with at least one series, unordered
	byEncoded map[string]*Resource
	recent    list.List // of *Series; most recently counted first
	bytes     int       // encoded attributes and resources

	cycle                  uint64
	firstUnsettled         uint64 // first cycle with spans that are neither delivered nor lost
	windowStart, windowEnd int64  // window of the cycle
	overflows              int    // current number of overflow series
	counts                 Counts
}

// Counts counts series since New.
type Counts struct {
	Series     int    // current number
	Ended      uint64 // ended because they were idle or evicted
	Overflowed uint64 // spans counted in an overflow series
}

// New returns empty totals. overflow is the attributes of overflow series, and common the resource
// of the common one.
func New(limits Limits, overflow, common []byte) *Totals {
	return &Totals{
		limits: limits, overflow: string(overflow), common: string(common), byEncoded: map[string]*Resource{},
	}
}

// Counts returns the counts of all cycles.
func (t *Totals) Counts() Counts {
	counts := t.counts
	counts.Series = t.recent.Len()
	return counts
}

// Begin begins the cycle with the given number. start and end are its window, in nanoseconds since the
// Unix epoch. Numbers must ascend, and windows must not overlap. The spans of cycles before
// firstUnsettled are all delivered or lost. Begin removes the series that had no spans for
// Limits.Idle, unless they have undelivered spans.
func (t *Totals) Begin(cycle, firstUnsettled uint64, start, end int64) {
	t.cycle, t.firstUnsettled = cycle, firstUnsettled
	t.windowStart, t.windowEnd = start, end
	for {
		s := t.leastRecent()
		if s == nil {
			return
		}
		isIdle := start-s.end >= int64(t.limits.Idle)
		if !isIdle || t.Undelivered(s) > 0 {
			return
		}
		t.remove(s)
	}
}

// Counted is the part of a series that one cycle has counted.
type Counted struct {
	Spans   uint64 // unit of the accounting
	Calls   uint64
	Errors  uint64 // part of Calls with an error
	Seconds float64
	Buckets *sketch.Buckets
	Classic []uint64 // not cumulative; Limits.Classic elements
}

// Add adds the counts of a cycle to the series with the given resource and attributes, and returns
// the series. If the series is new and would exceed the limits, Add uses an overflow series instead.
// Add retains none of its arguments.
func (t *Totals) Add(resource, attributes []byte, counted Counted) *Series {
	s := t.find(resource, attributes)
	if s == nil && t.makeRoom(resource, attributes) {
		s = t.addSeries(resource, attributes)
	}
	if s == nil {
		t.counts.Overflowed += counted.Spans
		s = t.overflowSeries(resource)
	}
	if t.Undelivered(s) == 0 { // Undelivered uses s.cycle, which changes below
		s.settled = s.Spans
	}
	s.Spans += counted.Spans
	s.Calls += counted.Calls
	s.Errors += counted.Errors
	s.Seconds += counted.Seconds
	s.Buckets.Add(counted.Buckets, t.limits.Buckets)
	for bucket, spans := range counted.Classic {
		s.Classic[bucket] += spans
	}
	s.cycle, s.end = t.cycle, t.windowEnd
	t.recent.MoveToFront(s.recent)
	return s
}

// IsCounted reports whether the series was counted in the cycle.
func (t *Totals) IsCounted(s *Series) bool { return s.cycle == t.cycle }

// Resources returns all resources that have a series. The caller must not modify them; they are
// valid until the next call.
func (t *Totals) Resources() []*Resource { return t.resources }

// overflowSeries returns the overflow series of a resource, and adds it if there is none. If the limits
// do not permit another overflow series, it does the same for the common resource, whose overflow
// series the limits always permit.
func (t *Totals) overflowSeries(resource []byte) *Series {
	attributes := []byte(t.overflow)
	if s := t.find(resource, attributes); s != nil {
		return s
	}
	isTooLong := len(resource)+len(attributes) > t.limits.ResourceBytes
	if isTooLong || t.overflows >= t.limits.Resources {
		resource = []byte(t.common)
		if s := t.find(resource, attributes); s != nil {
			return s
		}
	}
	t.overflows++
	return t.addSeries(resource, attributes)
}

// Undelivered returns the number of spans of a series that are neither delivered nor lost.
func (t *Totals) Undelivered(s *Series) uint64 {
	if isSettled := s.cycle < t.firstUnsettled; isSettled {
		return 0
	}
	return s.Spans - s.settled
}

// Abandon marks the undelivered spans of a series as lost, and returns their number.
func (t *Totals) Abandon(s *Series) (lost uint64) {
	lost = t.Undelivered(s)
	s.settled = s.Spans
	return lost
}

// find returns the series with the given resource and attributes, or nil.
func (t *Totals) find(resource, attributes []byte) *Series {
	if r := t.byEncoded[string(resource)]; r != nil {
		return r.byAttributes[string(attributes)]
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

// makeRoom evicts the least recently counted series until the limits permit a new series with the
// given resource and attributes. It returns false if this would require the eviction of a series that
// was counted in the current cycle or has undelivered spans.
func (t *Totals) makeRoom(resource, attributes []byte) bool {
	for !t.hasRoom(resource, attributes) {
		s := t.leastRecent()
		if s == nil || t.IsCounted(s) || t.Undelivered(s) > 0 {
			return false
		}
		t.remove(s)
	}
	return true
}

// hasRoom reports whether the limits permit a new series with the given resource and attributes.
func (t *Totals) hasRoom(resource, attributes []byte) bool {
	bytes := t.bytes + len(attributes)
	if isNewResource := t.byEncoded[string(resource)] == nil; isNewResource {
		bytes += len(resource)
	}
	return t.recent.Len() < t.limits.Series && bytes <= t.limits.Bytes
}

// addSeries adds a series, and its resource if that is new. It does not check the limits.
func (t *Totals) addSeries(resource, attributes []byte) *Series {
	r := t.byEncoded[string(resource)]
	if r == nil {
		r = &Resource{Encoded: string(resource), index: len(t.resources), byAttributes: map[string]*Series{}}
		t.byEncoded[r.Encoded] = r
		t.resources = append(t.resources, r)
		t.bytes += len(r.Encoded)
	}
	s := &Series{
		Attributes: string(attributes), Start: t.windowStart, Buckets: sketch.Buckets{Scale: sketch.MaxScale},
		Classic: make([]uint64, t.limits.Classic), resource: r, index: len(r.Series),
	}
	s.recent = t.recent.PushFront(s)
	r.byAttributes[s.Attributes] = s
	r.Series = append(r.Series, s)
	t.bytes += len(s.Attributes)
	return s
}

// remove removes a series, and its resource if the resource has no other series. The last series of
// the resource, whose list is unordered, moves to the index of the removed one.
func (t *Totals) remove(s *Series) {
	t.counts.Ended++
	if isOverflow := s.Attributes == t.overflow; isOverflow {
		t.overflows--
	}
	t.recent.Remove(s.recent)
	t.bytes -= len(s.Attributes)
	r := s.resource
	delete(r.byAttributes, s.Attributes)
	last := len(r.Series) - 1
	moved := r.Series[last]
	r.Series[s.index] = moved
	moved.index = s.index
	r.Series[last] = nil
	r.Series = r.Series[:last]
	if len(r.Series) == 0 {
		t.removeResource(r)
	}
}

// removeResource removes a resource without series. The last resource of the list, which is
// unordered, moves to the index of the removed one.
func (t *Totals) removeResource(r *Resource) {
	t.bytes -= len(r.Encoded)
	delete(t.byEncoded, r.Encoded)
	last := len(t.resources) - 1
	moved := t.resources[last]
	t.resources[r.index] = moved
	moved.index = r.index
	t.resources[last] = nil
	t.resources = t.resources[:last]
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

// Memory returns the maximum memory of Totals with these limits, for which each series has a
// resource of its own.
func (l *Limits) Memory() int {
	each := seriesBytes + resourceBytes + (l.Buckets+l.Classic)*counterBytes
	overflows := l.Resources + 1
	return (l.Series+overflows)*each + l.Bytes + overflows*l.ResourceBytes
}
