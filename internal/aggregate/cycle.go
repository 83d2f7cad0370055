package aggregate

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
	"golang.org/x/sys/cpu"
)

// Cycle is a set of spans that are exported together: those of a flush interval, or of the part of one
// before or after a requested flush. A publisher can use it between Guard.Enter and Guard.Exit. The
// cycle after the next one uses the same memory.
type Cycle struct {
	number      uint64
	started     time.Time
	window      Window
	width       time.Duration // width of a bucket
	interval    uint64
	registry    *registry.Registry // shared by all cycles of the interval
	tables      []*Table           // one per drainer
	merged      *Merged            // nil if Config.Merge is false
	objectives  objectiveCounts
	setKeyCount func(int)     // called with the number of keys when a key is added
	released    chan struct{} // contains a value while no cycle uses this memory
}

// Number returns the number of the cycle.
func (c *Cycle) Number() uint64 { return c.number }

// Interval returns the number of the export interval that contains the cycle. An interval has several cycles if flushes
// were requested. The IDs of keys and origins are valid in this interval only.
func (c *Cycle) Interval() uint64 { return c.interval }

// Registry returns the registry of the cycle's interval.
func (c *Cycle) Registry() *registry.Registry { return c.registry }

// Window returns the time buckets of the cycle. A publisher uses the result for the spans of one batch.
func (c *Cycle) Window() Window { return c.window }

// AdmitOrigin returns the ID of an origin, the process that sends spans, in this interval. It returns
// false if there are too many origins.
func (c *Cycle) AdmitOrigin(o span.Origin) (registry.OriginID, bool) {
	return c.registry.AdmitOrigin(o)
}

// AdmitOriginOrShared returns the ID of an origin, the description of a process that sends spans, in this
// interval. If there are too many origins, isShared is true, and several origins have the same ID.
func (c *Cycle) AdmitOriginOrShared(o span.Origin, process int32) (id registry.OriginID, isShared bool) {
	return c.registry.AdmitOriginOrShared(o, process)
}

// Admit returns the ID of a key in this interval. Labels with too many different values are replaced.
// Admit does not retain the key. A publisher must call it for the first two uses of a key in an
// interval, because the registry prefers keys that are used at least twice.
func (c *Cycle) Admit(origin registry.OriginID, key *span.Key) registry.Admission {
	admission := c.registry.Admit(origin, key)
	c.setKeyCount(int(admission.ID) + 1) // IDs are dense
	return admission
}

// AdmitUnlabeled returns the ID of the row for spans of an origin that are counted without labels.
func (c *Cycle) AdmitUnlabeled(origin registry.OriginID) registry.Admission {
	admission := c.registry.AdmitUnlabeled(origin)
	c.setKeyCount(int(admission.ID) + 1)
	return admission
}

// CountSpans counts further spans of a key that lost a label, so that the most frequent values of labels over
// their budget can be found.
func (c *Cycle) CountSpans(origin registry.OriginID, key *span.Key, spans uint64) {
	admission := c.registry.CountSpans(origin, key, spans)
	c.setKeyCount(int(admission.ID) + 1)
}

// objectiveCounts contains the spans of a cycle that objectives have counted. Publishers add to it.
type objectiveCounts struct {
	mu     sync.Mutex
	counts slo.Counts
}

// AddObjectives adds the spans of a batch that objectives have counted. The caller must be inside the cycle.
func (c *Cycle) AddObjectives(counts slo.Counts) {
	c.objectives.mu.Lock()
	defer c.objectives.mu.Unlock()
	c.objectives.counts.Add(counts)
}

// clearObjectives discards the counts of objectives.
func (c *Cycle) clearObjectives() {
	c.objectives.mu.Lock()
	defer c.objectives.mu.Unlock()
	clear(c.objectives.counts)
}

// begin reuses c for a new cycle, a set of spans that are exported together. The caller must first receive
// from c.released, to wait until exporters no longer read the previous cycle in this memory.
func (c *Cycle) begin(number uint64, now time.Time, intervals *registry.Intervals) {
	c.number = number
	c.started = now
	c.window = NewWindow(number, now, c.width)
	c.interval = intervals.Number()
	c.registry = intervals.Registry()
	for _, table := range c.tables {
		table.Begin(now)
	}
	if c.merged != nil {
		c.merged.begin(now)
	}
}

// release clears the memory, so that another cycle can begin in it.
func (c *Cycle) release() {
	for _, table := range c.tables {
		table.Reset()
	}
	if c.merged != nil {
		c.merged.reset()
	}
	c.clearObjectives()
	c.released <- struct{}{}
}

// noCycle is the number of the current cycle after the last one has ended, and of the entered cycle of a guard outside of
// cycles.
const noCycle = math.MaxUint64

// cycles publishes which cycle is current, and tracks the publishers that are inside one. The
// package comment explains why this makes boundaries exact.
type cycles struct {
	current atomic.Uint64
	_       cpu.CacheLinePad

	// alternating are the current cycle and the last one. Cycle n is alternating[n%2], and reuses the memory of cycle n-2.
	alternating [2]*Cycle

	waiting atomic.Bool   // the sealer is waiting for guards to exit
	exited  chan struct{} // contains a value if a guard has exited since the sealer last looked

	mu     sync.Mutex
	guards map[*Guard]struct{}
}

// byNumber returns the cycle with the given number, which must be the current one, the last one or the next one.
func (c *cycles) byNumber(number uint64) *Cycle { return c.alternating[number%2] }

// Guard prevents the cycle that its publisher is inside from being sealed (epoch-based
// reclamation). Each connection has one, and uses it from one goroutine.
type Guard struct {
	_       cpu.CacheLinePad
	entered atomic.Uint64 // number of the entered cycle, or noCycle
	_       cpu.CacheLinePad
	cycles  *cycles
}

func (c *cycles) newGuard() *Guard {
	g := &Guard{cycles: c}
	g.entered.Store(noCycle)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guards[g] = struct{}{}
	return g
}

// Close unregisters the guard. The publisher must have called Exit.
func (g *Guard) Close() {
	g.cycles.mu.Lock()
	defer g.cycles.mu.Unlock()
	delete(g.cycles.guards, g)
}

// Enter returns the current cycle, the set of spans that are exported next. The cycle is not exported
// before the caller calls Exit. Enter returns nil after the last cycle has ended: nothing can be
// published any more.
func (g *Guard) Enter() *Cycle {
	for {
		number := g.cycles.current.Load()
		if number == noCycle {
			return nil
		}
		if g.tryEnter(number) {
			return g.cycles.byNumber(number)
		}
	}
}

// tryEnter keeps the cycle with the given number from being exported until Exit. If another cycle has
// become current, tryEnter changes nothing and returns false.
func (g *Guard) tryEnter(number uint64) bool {
	// The sealer does the reverse: it stores current, and then loads entered in awaitExits. So either the sealer sees
	// that this guard has entered the cycle, and waits, or the load below sees that another cycle is current.
	g.entered.Store(number)
	isCurrent := g.cycles.current.Load() == number
	if !isCurrent {
		g.Exit()
	}
	return isCurrent
}

// Exit permits the sealer to seal the entered cycle. The caller must have published everything.
func (g *Guard) Exit() {
	g.entered.Store(noCycle)
	if g.cycles.waiting.Load() {
		select {
		case g.cycles.exited <- struct{}{}:
		default: // the channel contains a value already, which wakes the sealer
		}
	}
}

// Cycle returns the entered cycle. The publisher must be between Enter and Exit.
func (g *Guard) Cycle() *Cycle { return g.cycles.byNumber(g.entered.Load()) }

// isInside reports whether the publisher of the guard has entered the cycle with the given number, and has not called
// Exit since.
func (g *Guard) isInside(number uint64) bool { return g.entered.Load() == number }

// awaitExits waits until no publisher is inside the cycle with the given number. The caller must first make another
// cycle current, so that no publisher enters the given cycle again. Each publisher has a guard.
func (c *cycles) awaitExits(number uint64) {
	c.waiting.Store(true) // from now on, Exit sends to c.exited
	defer c.waiting.Store(false)
	c.mu.Lock() // for c.guards; Exit does not lock c.mu, so it is not blocked
	defer c.mu.Unlock()
	for guard := range c.guards {
		for guard.isInside(number) {
			<-c.exited // any guard can have sent this, so check the guard again
		}
	}
}

// The window of a cycle is the range of buckets in which it counts spans: the bucket in which the cycle
// began (the main bucket), the previous one, and the next one. The next bucket is for spans that end between a
// bucket boundary and the seal that follows it.
const (
	previousBucket = iota // also for spans that ended earlier
	mainBucket
	nextBucket // also for spans that end later, if the seal is very late

	windowBuckets
)

// bucketStart returns the start of the time bucket that contains t, in nanoseconds since the Unix epoch.
func bucketStart(t time.Time, width int64) int64 {
	nanoseconds := t.UnixNano()
	return nanoseconds - nanoseconds%width
}

// oldestBucket returns the start of the oldest time bucket in which a cycle counts spans. This is the bucket
// before the one that contains started, the start of the cycle. width is the width of a bucket.
func oldestBucket(started time.Time, width int64) int64 { return bucketStart(started, width) - width }

// Window determines in which bucket of a cycle's window a span is counted. Publishers create one per
// batch, after they have read the batch: so no span of the batch can have ended after the Window
// first reads the clock.
type Window struct {
	mainStart int64 // start of the main bucket, in nanoseconds since the Unix epoch
	mainEnd   int64 // start of the next bucket
	mainPlace Place // place of spans that end in the main bucket
	now       int64 // nanoseconds since the Unix epoch; 0 until the clock is read
}

// NewWindow returns the time buckets in which the cycle (one export interval) with the given number counts spans: the
// main bucket, which contains the start of the cycle, the previous one and the next one. width is the width of a
// bucket.
func NewWindow(number uint64, started time.Time, width time.Duration) Window {
	mainStart := bucketStart(started, int64(width))
	cycleIndex := uint8(number % 2) // identifies the cycle, because at most two are in use
	return Window{
		mainStart: mainStart, mainEnd: mainStart + int64(width),
		mainPlace: Place{cycle: cycleIndex, bucket: mainBucket},
	}
}

// Place returns the time bucket in which a span is counted. end is the end time of the span, in nanoseconds since the
// Unix epoch. Most spans end in the main bucket, in which the cycle began.
func (w *Window) Place(end int64) Place {
	isInMainBucket := w.mainStart <= end && end < w.mainEnd
	if isInMainBucket {
		return w.mainPlace
	}
	return w.placeOutsideMain(end)
}

// placeOutsideMain returns the time bucket of a span that did not end in the window's main bucket. It is
// a function of its own so that the compiler can inline Place.
func (w *Window) placeOutsideMain(end int64) Place {
	if end < w.mainStart {
		return w.placeBefore(end)
	}
	return w.placeAfter(end)
}

// placeBefore returns the place of a span that ended before the main bucket, the one that contains the start of the
// cycle. The span is counted in the previous bucket. If it ended even before that bucket, the place is marked as late.
func (w *Window) placeBefore(end int64) Place {
	place := w.mainPlace
	place.bucket = previousBucket
	previousStart := w.mainStart - w.width()
	if end < previousStart {
		place.timing = late
	}
	return place
}

// placeAfter returns the time bucket for a span that ended after the main bucket, in which the cycle began. A span that
// ends in the future is counted in the bucket of the current time, and its place is marked as early. No span is counted in
// a bucket after nextBucket.
func (w *Window) placeAfter(end int64) Place {
	if w.now == 0 {
		w.now = time.Now().UnixNano()
	}
	now := max(w.now, w.mainStart) // the clock can have been set back since the cycle began
	bucketOfEnd, bucketOfNow := w.bucketAt(end), w.bucketAt(now)
	place := w.mainPlace
	place.bucket = uint8(min(bucketOfEnd, bucketOfNow, nextBucket))
	endsInLaterBucket := bucketOfEnd > bucketOfNow
	if endsInLaterBucket {
		place.timing = early
	}
	return place
}

// bucketAt returns the index of the bucket that contains the given time, which must not be before the
// main bucket. The index can be higher than nextBucket.
func (w *Window) bucketAt(nanoseconds int64) int64 {
	return mainBucket + (nanoseconds-w.mainStart)/w.width()
}

// width returns the width of a bucket, in nanoseconds.
func (w *Window) width() int64 { return w.mainEnd - w.mainStart }

// Slot is a snapshot in a ring, or a value of one: the numbers that a drainer needs. It has no pointers, so that the
// garbage collector need not scan the rings, and publishing runs no write barrier.
type Slot struct {
	Duration uint64  // nanoseconds
	End      int64   // nanoseconds since the Unix epoch
	Weight   float64 // number of spans that it represents
	Key      registry.KeyID
	Flags    span.Flags
	Place
}

// spans returns 1 for a span, and 0 for a value of a span.
func (s *Slot) spans() uint64 {
	if s.Flags&span.IsValue != 0 {
		return 0
	}
	return 1
}

// Place identifies the cycle and bucket in which a snapshot is counted. Window.Place returns it.
type Place struct {
	cycle  uint8 // cycle number modulo 2; at most two cycles are in use
	bucket uint8 // index in the cycle's window
	timing timing
}

// timing is the relation of a snapshot's end to the window and the current time.
type timing uint8

const (
	onTime timing = iota // neither late nor early
	late                 // ended before the window; counted in the oldest bucket
	early                // ends in the future; counted in the bucket of the current time
)
