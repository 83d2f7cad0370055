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

// Begin begins a cycle with the given window, in nanoseconds since the Unix epoch. Cycle numbers
// ascend, and windows must not overlap. All spans of cycles before firstUnsettled are delivered or
// lost. Begin ends series that are idle, unless they have undelivered spans.
func (t *Totals) Begin(cycle, firstUnsettled uint64, start, end int64) {
	t.cycle, t.firstUnsettled, t.windowStart, t.windowEnd = cycle, firstUnsettled, start, end
	for {
		oldest := t.oldest()
		if oldest == nil || start-oldest.end < int64(t.limits.Idle) || t.Undelivered(oldest) > 0 {
			return
		}
		t.end(oldest)
	}
}

// Counted is the part of a series that one cycle has counted.
type Counted struct {
	Spans   uint64 // unit of the accounting
	Calls   uint64
	Seconds float64
	Buckets *sketch.Buckets
	Classic []uint64 // not cumulative; Limits.Classic elements
}

// Add adds the counts of a cycle to the series with the given resource and attributes, and returns
// the series. If the series is new and the limits do not permit it, Add uses an overflow series
// instead. Add retains none of its arguments.
func (t *Totals) Add(resource, attributes []byte, counted Counted) *Series {
	s := t.find(resource, attributes)
	if s == nil && t.makeRoom(resource, attributes) {
		s = t.newSeries(resource, attributes)
	}
	if s == nil {
		t.counts.Overflowed += counted.Spans
		s = t.overflowOf(resource)
	}
	if t.Undelivered(s) == 0 { // record this before s.cycle changes
		s.settled = s.Spans
	}
	s.Spans += counted.Spans
	s.Calls += counted.Calls
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

// overflowOf returns the overflow series of a resource. If the limits do not permit another overflow
// series, it returns the one of the common resource, for which Limits always reserves memory.
func (t *Totals) overflowOf(resource []byte) *Series {
	overflow := []byte(t.overflow)
	s := t.find(resource, overflow)
	isLong := len(resource)+len(overflow) > t.limits.ResourceBytes
	if s == nil && (t.overflows >= t.limits.Resources || isLong) {
		resource = []byte(t.common)
		s = t.find(resource, overflow)
	}
	if s == nil {
		s = t.newSeries(resource, overflow)
		t.overflows++
	}
	return s
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

func (t *Totals) find(resource, attributes []byte) *Series {
	if r := t.byEncoded[string(resource)]; r != nil {
		return r.byAttributes[string(attributes)]
	}
	return nil
}

// oldest returns the least recently counted series, or nil.
func (t *Totals) oldest() *Series {
	if last := t.recent.Back(); last != nil {
		return last.Value.(*Series)
	}
	return nil
}

// makeRoom evicts the least recently counted series until there is room for another one. It does
// not evict series counted in this cycle, or with undelivered spans, and reports false if that would
// be necessary.
func (t *Totals) makeRoom(resource, attributes []byte) bool {
	for {
		bytes := t.bytes + len(attributes)
		if t.byEncoded[string(resource)] == nil {
			bytes += len(resource)
		}
		if t.recent.Len() < t.limits.Series && bytes <= t.limits.Bytes {
			return true
		}
		oldest := t.oldest()
		if oldest == nil || oldest.cycle == t.cycle || t.Undelivered(oldest) > 0 {
			return false
		}
		t.end(oldest)
	}
}

// newSeries adds a series, and its resource if necessary. The caller has checked the limits.
func (t *Totals) newSeries(resource, attributes []byte) *Series {
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

// end removes a series, and its resource if the resource has no other series. Lists are unordered,
// so the last element takes the place of the removed one.
func (t *Totals) end(s *Series) {
	t.counts.Ended++
	if s.Attributes == t.overflow {
		t.overflows--
	}
	t.recent.Remove(s.recent)
	t.bytes -= len(s.Attributes)
	r := s.resource
	delete(r.byAttributes, s.Attributes)
	last := len(r.Series) - 1
	r.Series[last].index = s.index
	r.Series[s.index], r.Series[last] = r.Series[last], nil
	if r.Series = r.Series[:last]; last > 0 {
		return
	}
	t.bytes -= len(r.Encoded)
	delete(t.byEncoded, r.Encoded)
	last = len(t.resources) - 1
	t.resources[last].index = r.index
	t.resources[r.index], t.resources[last] = t.resources[last], nil
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
