package totals

import (
	"container/list"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
)

// Limits limits Totals.
type Limits struct {
	Series  int           // at a time
	Bytes   int           // of encoded resources and attributes
	Idle    time.Duration // how long a series lasts that is not counted any more
	Buckets int           // of a histogram
	Classic int           // classic buckets of a series; 0 where none are wanted

	// In addition: an overflow series per resource of one cycle, and one of the common resource.
	Resources     int // so many
	ResourceBytes int // the longest of them, encoded, and the overflow attributes
}

// Series is what was counted of one series since it began.
type Series struct {
	Attributes string // encoded
	Start      int64  // of the window in which it was counted first
	Spans      uint64 // as the books count them
	Calls      uint64
	Seconds    float64
	Buckets    sketch.Buckets
	Classic    []uint64 // by classic bucket

	Note any // for use by the reader of the totals

	resource *Resource
	place    int           // in Resource.Series
	cycle    uint64        // in which it was counted last
	end      int64         // of that one's window
	settled  uint64        // of its Spans: those that are delivered or lost
	recent   *list.Element // of Totals.recent
}

// Resource is the series of one resource.
type Resource struct {
	Encoded string
	Series  []*Series // in no order

	place        int // in Totals.resources
	byAttributes map[string]*Series
}

// Totals are the running totals of a destination. See the package comment.
type Totals struct {
	limits    Limits
	overflow  string      // attributes
	common    string      // resource
	resources []*Resource // each with a series, in no order
	byEncoded map[string]*Resource
	recent    list.List // of *Series, the one that was counted last at the front
	bytes     int       // of their attributes and resources

	cycle       uint64
	settled     uint64 // cycle up to which all spans are delivered or lost
	start, end  int64  // of the window
	overflowing int    // resources whose overflow began in it
	lost        Lost   // in it
	counts      Counts
}

// Lost counts spans that may not have been delivered when their series ended.
type Lost struct {
	Idle      uint64 // because it was not counted any more
	PushedOut uint64 // to make room
}

// Counts counts series since New.
type Counts struct {
	Series     int    // at present
	Ended      uint64 // because they were not counted any more, or to make room
	Overflowed uint64 // spans that found no room in a series of their own
}

// New returns totals without a series. Overflow is the attributes of overflow series, common the resource
// of the common one.
func New(limits Limits, overflow, common []byte) *Totals {
	return &Totals{
		limits: limits, overflow: string(overflow), common: string(common), byEncoded: map[string]*Resource{},
	}
}

// Counts are those of all cycles.
func (t *Totals) Counts() Counts {
	counts := t.counts
	counts.Series = t.recent.Len()
	return counts
}

// Begin begins a cycle. Its window starts where the last one ended, or later, in nanoseconds since the Unix
// epoch. isSettled means that all spans of earlier cycles are delivered or lost.
func (t *Totals) Begin(start, end int64, isSettled bool) {
	if isSettled {
		t.settled = t.cycle
	}
	t.cycle, t.start, t.end = t.cycle+1, start, end
	t.overflowing, t.lost = 0, Lost{}
	for {
		oldest := t.oldest()
		if oldest == nil || start-oldest.end < int64(t.limits.Idle) {
			return
		}
		t.lost.Idle += t.finish(oldest)
	}
}

// Lost counts the undelivered spans of the series that the cycle ended.
func (t *Totals) Lost() Lost { return t.lost }

// Counted is what a cycle has counted of a series.
type Counted struct {
	Spans   uint64 // as the books count them
	Calls   uint64
	Seconds float64
	Buckets *sketch.Buckets
	Classic []uint64 // Limits.Classic counts, each of one bucket alone
}

// Add adds what the cycle has counted of a series, and returns the series that has it, which can be an
// overflow series. It keeps none of its arguments.
func (t *Totals) Add(resource, attributes []byte, counted Counted) *Series {
	s := t.find(resource, attributes)
	if s == nil && t.makeRoom(resource, attributes) {
		s = t.begin(resource, attributes)
	}
	if s == nil {
		t.counts.Overflowed += counted.Spans
		s = t.overflowOf(resource)
	}
	if s.cycle <= t.settled {
		s.settled = s.Spans
	}
	s.Spans += counted.Spans
	s.Calls += counted.Calls
	s.Seconds += counted.Seconds
	s.Buckets.Add(counted.Buckets, t.limits.Buckets)
	for bucket, spans := range counted.Classic {
		s.Classic[bucket] += spans
	}
	s.cycle, s.end = t.cycle, t.end
	t.recent.MoveToFront(s.recent)
	return s
}

// IsCounted reports whether the cycle has counted a series.
func (t *Totals) IsCounted(s *Series) bool { return s.cycle == t.cycle }

// Resources returns all resources that have a series. The caller does not change them; they are valid until
// the next call.
func (t *Totals) Resources() []*Resource { return t.resources }

// overflowOf is the overflow series of a resource. There is always room for it, because a cycle has few of
// them, and series of earlier cycles have made room.
func (t *Totals) overflowOf(resource []byte) *Series {
	overflow := []byte(t.overflow)
	s := t.find(resource, overflow)
	isLong := len(resource)+len(overflow) > t.limits.ResourceBytes
	if s == nil && (t.overflowing >= t.limits.Resources || isLong) {
		resource = []byte(t.common)
		s = t.find(resource, overflow)
	}
	if s == nil {
		s = t.begin(resource, overflow)
		t.overflowing++
	}
	return s
}

// Undelivered is how many spans of a series the reader may lack.
func (t *Totals) Undelivered(s *Series) uint64 {
	if s.cycle <= t.settled {
		return 0
	}
	return s.Spans - s.settled
}

// Abandon counts the spans of a series that the reader may lack as lost, and returns them.
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

// oldest is the series that was not counted for the longest time, or nil.
func (t *Totals) oldest() *Series {
	if last := t.recent.Back(); last != nil {
		return last.Value.(*Series)
	}
	return nil
}

// makeRoom ends the oldest series until there is room for one more, except those that were counted in this
// cycle.
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
		if oldest == nil || oldest.cycle == t.cycle {
			return false
		}
		t.lost.PushedOut += t.finish(oldest)
	}
}

func (t *Totals) begin(resource, attributes []byte) *Series {
	r := t.byEncoded[string(resource)]
	if r == nil {
		r = &Resource{Encoded: string(resource), place: len(t.resources), byAttributes: map[string]*Series{}}
		t.byEncoded[r.Encoded] = r
		t.resources = append(t.resources, r)
		t.bytes += len(r.Encoded)
	}
	s := &Series{
		Attributes: string(attributes), Start: t.start, Buckets: sketch.Buckets{Scale: sketch.MaxScale},
		Classic: make([]uint64, t.limits.Classic), resource: r, place: len(r.Series),
	}
	s.recent = t.recent.PushFront(s)
	r.byAttributes[s.Attributes] = s
	r.Series = append(r.Series, s)
	t.bytes += len(s.Attributes)
	return s
}

// finish ends a series, and its resource with the last. It returns the spans that the reader may lack.
func (t *Totals) finish(s *Series) (lost uint64) {
	t.counts.Ended++
	lost = t.Undelivered(s)
	t.recent.Remove(s.recent)
	t.bytes -= len(s.Attributes)
	r := s.resource
	delete(r.byAttributes, s.Attributes)
	last := len(r.Series) - 1
	r.Series[last].place = s.place
	r.Series[s.place], r.Series[last] = r.Series[last], nil
	if r.Series = r.Series[:last]; last > 0 {
		return lost
	}
	t.bytes -= len(r.Encoded)
	delete(t.byEncoded, r.Encoded)
	last = len(t.resources) - 1
	t.resources[last].place = r.place
	t.resources[r.place], t.resources[last] = t.resources[last], nil
	t.resources = t.resources[:last]
	return lost
}

const (
	// listBytes and mapBytes are what a list's element and a place in a map of texts take,
	// the map having just grown; referenceBytes is a pointer in a slice that has.
	listBytes      = 64
	mapBytes       = 96
	referenceBytes = 16
	// undeliveredBytes is the number of a series' undelivered spans in queued payloads, in those that
	// replace them, and as much again, because the lists grow by doubling.
	undeliveredBytes = 4 * counterBytes
	seriesBytes      = int(unsafe.Sizeof(Series{})) + listBytes + mapBytes + referenceBytes + undeliveredBytes
	resourceBytes    = int(unsafe.Sizeof(Resource{})) + emptyMapBytes + mapBytes + referenceBytes
	emptyMapBytes    = 512
	counterBytes     = 8
)

// Memory is the maximum memory of Totals with these limits. Each series can have a resource of its own.
func (l *Limits) Memory() int {
	each := seriesBytes + resourceBytes + (l.Buckets+l.Classic)*counterBytes
	overflows := l.Resources + 1
	return (l.Series+overflows)*each + l.Bytes + overflows*l.ResourceBytes
}
