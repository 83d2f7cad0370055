package totals

import (
	"container/list"

	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// Series is what was counted of one series since it began.
type Series struct {
	Attributes string // encoded
	Start      int64  // of the window in which it was counted first
	Calls      uint64
	Seconds    float64
	Buckets    sketch.Buckets

	resource *Resource
	place    int           // in Resource.Series
	cycle    uint64        // in which it was counted last
	added    uint64        // spans, in that cycle
	end      int64         // of that one's window
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
	resources []*Resource // each with a series, in no order
	byEncoded map[string]*Resource
	recent    list.List // of *Series, the one that was counted last at the front
	bytes     int       // of their attributes and resources

	cycle      uint64
	start, end int64 // of its window
	counts     Counts
}

// Counts say what became of series since New.
type Counts struct {
	Series     int    // at present
	Ended      uint64 // because they were not counted any more, or to make room
	Overflowed uint64 // additions that found no room for a series of their own
}

// New returns totals without a series.
func New(limits Limits, overflow []byte) *Totals {
	return &Totals{limits: limits, overflow: string(overflow), byEncoded: map[string]*Resource{}}
}

// Counts are those of all cycles.
func (t *Totals) Counts() Counts {
	counts := t.counts
	counts.Series = t.recent.Len()
	return counts
}

// Begin begins a cycle, whose window starts where the last one ended, or later, in
// nanoseconds since the Unix epoch.
func (t *Totals) Begin(start, end int64) {
	t.cycle, t.start, t.end = t.cycle+1, start, end
	for {
		oldest := t.oldest()
		if oldest == nil || start-oldest.end < int64(t.limits.Idle) {
			return
		}
		t.finish(oldest)
	}
}

// Add adds what the cycle has counted of a series. It keeps nothing of what it is given.
func (t *Totals) Add(resource, attributes []byte, calls uint64, seconds float64, buckets *sketch.Buckets) {
	s := t.find(resource, attributes)
	if s == nil && t.makeRoom(resource, attributes) {
		s = t.begin(resource, attributes)
	}
	if s == nil {
		t.counts.Overflowed++
		if s = t.find(resource, []byte(t.overflow)); s == nil {
			s = t.begin(resource, []byte(t.overflow))
		}
	}
	if s.cycle != t.cycle {
		s.added = 0
	}
	s.added += buckets.Spans
	s.Calls += calls
	s.Seconds += seconds
	s.Buckets.Add(buckets, t.limits.Buckets)
	s.cycle, s.end = t.cycle, t.end
	t.recent.MoveToFront(s.recent)
}

// Resources are all that have a series, with all of them. They are only read, and valid until
// the next call.
func (t *Totals) Resources() []*Resource { return t.resources }

// Added is how many spans of a series this cycle has counted.
func (t *Totals) Added(s *Series) uint64 {
	if s.cycle != t.cycle {
		return 0
	}
	return s.added
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

// makeRoom ends the oldest series until there is room for one more, but none that was
// counted in this cycle.
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
		t.finish(oldest)
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
		resource: r, place: len(r.Series),
	}
	s.recent = t.recent.PushFront(s)
	r.byAttributes[s.Attributes] = s
	r.Series = append(r.Series, s)
	t.bytes += len(s.Attributes)
	return s
}

// finish ends a series, and its resource with the last.
func (t *Totals) finish(s *Series) {
	t.counts.Ended++
	t.recent.Remove(s.recent)
	t.bytes -= len(s.Attributes)
	r := s.resource
	delete(r.byAttributes, s.Attributes)
	last := len(r.Series) - 1
	r.Series[last].place = s.place
	r.Series[s.place], r.Series[last] = r.Series[last], nil
	if r.Series = r.Series[:last]; last > 0 {
		return
	}
	t.bytes -= len(r.Encoded)
	delete(t.byEncoded, r.Encoded)
	last = len(t.resources) - 1
	t.resources[last].place = r.place
	t.resources[r.place], t.resources[last] = t.resources[last], nil
	t.resources = t.resources[:last]
}
