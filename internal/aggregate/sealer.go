package aggregate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

// Limits of requested flushes: the minimum time between two, and the maximum number per interval. Further
// requests wait until the interval ends. Each seal sends a payload per origin, so a client that requests
// flushes in a loop must not set the pace.
const (
	minFlushSpacing = time.Second
	maxFlushes      = 3
)

// sealer is the goroutine that ends each cycle and begins the next: at the end of each interval,
// and in between on request.
type sealer struct {
	aggregator *Aggregator
	requests   flushRequests
	clears     chan struct{}
	stop       chan struct{}
	done       chan struct{}

	// Used only by the goroutine.
	intervalEnd time.Time  // end of this interval
	lastFlush   time.Time  // last requested flush
	flushes     int        // requested flushes in this interval
	unfinished  Deliveries // deliveries without an outcome, oldest first; exporters limit their number
}

// run seals cycles until stop is closed. It computes each boundary from the wall clock, so that
// neither a slow seal nor a clock step makes the cycles drift.
func (s *sealer) run() {
	defer close(s.done)
	interval := s.aggregator.config.FlushInterval
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.intervalEnd = nextBoundary(time.Now(), interval)
	for {
		timer.Reset(s.timeUntilSeal())
		select {
		case <-s.requests.wake:
			continue
		case <-s.clears:
			s.aggregator.clear()
			continue
		case <-s.stop:
			request := s.requests.take()
			last := s.aggregator.cycles.current.Swap(noCycle)
			s.aggregator.awaitCounts(last)
			s.seal(last, request)
			for _, d := range s.aggregator.drainers {
				d.ring.Send(ring.Signal{Kind: ring.Stop})
				<-d.done
			}
			return
		case <-timer.C:
		}
		switch now := time.Now(); {
		case !stripMonotonic(now).Before(s.intervalEnd): // the interval has ended
			s.flushes = 0
			s.endCycle(true)
		case s.mayFlush() && now.Sub(s.lastFlush) >= minFlushSpacing:
			s.flushes++
			s.lastFlush = now
			s.endCycle(false)
		default: // the wall clock was set back
			s.intervalEnd = nextBoundary(now, interval)
		}
	}
}

// endCycle ends the current cycle, the set of spans that are exported together, begins the next one, and passes the
// ended one to the exporters. isIntervalEnd is true if the export interval ends, too, and false if a client has
// requested an export before that.
func (s *sealer) endCycle(isIntervalEnd bool) {
	a := s.aggregator
	request := s.requests.take() // first, because later requests can be for spans of the next cycle
	ended, next := a.nextCycle(isIntervalEnd)
	if isIntervalEnd {
		s.intervalEnd = nextBoundary(next.started, a.config.FlushInterval)
	}
	a.awaitCounts(ended) // no publisher adds spans or keys to the ended cycle any more
	if isIntervalEnd {
		a.intervals.ReportEnded()
	}
	s.seal(ended, request)
}

// timeUntilSeal returns the time until the current cycle, a set of spans that are exported together, must end. It is
// negative if that time has passed. The cycle ends with the interval, or earlier if a client has requested a flush and
// minFlushSpacing has passed since the last one. If the wall clock was set back, the end of the interval can be far away;
// timeUntilSeal returns at most the length of an interval.
func (s *sealer) timeUntilSeal() time.Duration {
	untilIntervalEnd := min(time.Until(s.intervalEnd), s.aggregator.config.FlushInterval)
	if s.mayFlush() {
		untilFlush := time.Until(s.lastFlush.Add(minFlushSpacing))
		return min(untilIntervalEnd, untilFlush)
	}
	return untilIntervalEnd
}

// mayFlush reports whether a requested flush is pending, and is within the limit of the interval.
func (s *sealer) mayFlush() bool { return s.flushes < maxFlushes && s.requests.isPending() }

// nextCycle ends the current cycle, the set of spans that are exported together, and begins the next
// one. It returns the number of the ended cycle, and the next cycle. It first waits until the exporters have released the
// memory that the next cycle reuses. If newInterval is true, the next cycle begins without keys: the registry forgets
// all of the last interval.
func (a *Aggregator) nextCycle(newInterval bool) (ended uint64, next *Cycle) {
	ended = a.cycles.current.Load()
	nextNumber := ended + 1
	next = a.cycles.byNumber(nextNumber)
	<-next.released
	if newInterval {
		a.intervals.Begin()
	}
	next.begin(nextNumber, time.Now(), a.intervals)
	a.config.Recovery.BeginCycle(nextNumber) // in the recovery file, before a publisher can use the cycle
	a.cycles.current.Store(nextNumber)
	return ended, next
}

// seal passes the counts of an ended cycle, a set of spans that are exported together, to the exporters. awaitCounts
// must have returned for the cycle. request is the flush that clients have requested, or nil. seal completes it with
// the deliveries of this and earlier cycles that have no outcome yet.
func (s *sealer) seal(number uint64, request *flushRequest) {
	a := s.aggregator
	c := a.cycles.byNumber(number)
	sealed := a.sealedCycle(c)
	c.clearPending() // from now on the exporters account for the spans
	a.sealed.Inc()
	a.lastSeal.Store(time.Now())
	s.addUnfinished(sealed.Delivery)
	a.config.Deliver(sealed)
	if request != nil {
		request.complete(slices.Clone(s.unfinished))
	}
}

// addUnfinished adds a delivery to the unfinished ones, and removes those that have finished meanwhile.
func (s *sealer) addUnfinished(added *Delivery) {
	s.unfinished = slices.DeleteFunc(s.unfinished, (*Delivery).isFinished)
	s.unfinished = append(s.unfinished, added)
}

// awaitCounts waits until all spans of an ended cycle are counted: first until no publisher is inside
// the cycle, then until the drainers have read all slots that were published in it.
func (a *Aggregator) awaitCounts(number uint64) {
	a.cycles.awaitExits(number)
	a.signalAll(ring.Signal{Kind: ring.Report, Arg: number})
}

// sealedCycle returns the counts of an ended cycle in the form that exporters read. All publishers must have left the
// cycle, because sealedCycle does not lock the counts.
func (a *Aggregator) sealedCycle(c *Cycle) *Sealed {
	origins, keys := c.registry.Contents()
	return &Sealed{
		Cycle: c.number, Start: c.started, End: time.Now(), Width: c.width, Origins: origins, Keys: keys,
		Objectives: c.objectives.counts, tables: c.tables, merged: c.merged,
		Delivery: a.newDelivery(c.number), release: c.release,
	}
}

// newDelivery returns a Delivery, which exporters notify of what happens to the spans of a cycle. It records two facts
// in the recovery file, which the next daemon reads: whether a destination may have received a part of the spans, and
// that all are delivered or given up.
func (a *Aggregator) newDelivery(cycle uint64) *Delivery {
	onDoubt := func(isInDoubt bool) { a.config.Recovery.SetInDoubt(cycle, isInDoubt) }
	onSettled := func() {
		a.config.Recovery.Settle(cycle)
		a.settled.add(cycle) // notifies clients, so it comes after the record in the file
	}
	return NewWatchedDelivery(onDoubt, onSettled)
}

// clearPending resets the numbers of snapshots that Stats counts as pending.
func (c *Cycle) clearPending() {
	for _, table := range c.tables {
		table.clearPending()
	}
	if c.merged != nil {
		c.merged.pending.Store(0)
	}
}

// clear discards the spans that are counted in the current cycle so far. Their keys remain registered. It passes only the
// number of discarded spans to the exporters.
func (a *Aggregator) clear() {
	number := a.cycles.current.Load()
	cycle := a.cycles.byNumber(number)
	a.signalAll(ring.Signal{Kind: ring.Clear, Arg: number}) // each drainer sets d.discarded and d.discardedValues
	discarded, discardedValues := uint64(0), uint64(0)
	for _, d := range a.drainers {
		discarded += d.discarded
		discardedValues += d.discardedValues
	}
	if cycle.merged != nil { // contains what tracers have counted
		discarded += cycle.merged.clear()
	}
	cycle.clearObjectives()
	now := time.Now()
	a.config.Deliver(&Sealed{
		Cycle: number, Start: now, End: now, Width: a.config.BucketWidth,
		Cleared: discarded, ClearedValues: discardedValues, Delivery: NewDelivery(),
	})
}

// signalAll sends a signal to all drainers, and waits until all have handled it.
func (a *Aggregator) signalAll(signal ring.Signal) {
	for _, d := range a.drainers {
		if !d.ring.Send(signal) {
			panic("BUG: a signal is pending in a ring, although the sealer waits for each one")
		}
	}
	for _, d := range a.drainers {
		<-d.handled
	}
}

// nextBoundary returns the first multiple of the interval after now on the wall clock.
func nextBoundary(now time.Time, interval time.Duration) time.Time {
	return stripMonotonic(now).Add(interval - time.Duration(now.UnixNano()%int64(interval)))
}

// stripMonotonic strips the monotonic clock reading: boundaries are wall-clock times and must be compared as
// such, even after the clock has been set.
func stripMonotonic(t time.Time) time.Time { return t.Round(0) }

// Sealed is the contents of an ended cycle for the exporters: the counts of its spans, and the keys and
// origins under which they are counted. The receiver can use it until it calls Release.
type Sealed struct {
	Cycle   uint64
	Start   time.Time           // start of the cycle
	End     time.Time           // time of the seal
	Width   time.Duration       // width of a bucket
	Origins []span.Origin       // by OriginID
	Keys    []registry.KeyEntry // by KeyID

	Objectives slo.Counts // spans that each objective has counted

	// Cleared is the number of spans that Aggregator.Clear has discarded, because no destination accepts statistics. If it
	// is greater than 0, all fields with keys, origins and counts are empty.
	Cleared uint64
	// ClearedValues is the number of values of measures that were discarded with these spans.
	ClearedValues uint64

	// Delivery is resolved when every payload of the cycle is delivered or given up.
	Delivery *Delivery

	tables  []*Table // one per drainer; several can have a row for the same key
	merged  *Merged  // nil if groups are not merged
	release func()
}

// NewSealed returns a sealed cycle with the given content.
func NewSealed(cycle uint64, start, end time.Time, width time.Duration,
	origins []span.Origin, keys []registry.KeyEntry, tables ...*Table,
) *Sealed {
	return &Sealed{
		Cycle: cycle, Start: start, End: end, Width: width,
		Origins: origins, Keys: keys, tables: tables, Delivery: NewDelivery(),
	}
}

// Parts iterates over all rows of all tables.
func (s *Sealed) Parts(yield func(Part) bool) {
	for _, table := range s.tables {
		for i := range table.Len() {
			if !yield(table.Part(i)) {
				return
			}
		}
	}
	if s.merged == nil {
		return
	}
	for i := range s.merged.rows {
		if !yield(s.merged.part(i)) {
			return
		}
	}
}

// Mappings returns the mappings of the parts, by MappingID.
func (s *Sealed) Mappings() []sketch.Mapping {
	if s.merged == nil {
		return []sketch.Mapping{sketch.AgentMapping}
	}
	return s.merged.mappings
}

// Spans returns the number of snapshots in all tables, computed from their rows.
func (s *Sealed) Spans() (spans uint64) {
	for part := range s.Parts {
		spans += part.Counts().Spans
	}
	return spans
}

// Values returns the number of values of measures in all tables, computed from their rows.
func (s *Sealed) Values() (values uint64) {
	for part := range s.Parts {
		if s.Keys[part.Key].Key.Measure != 0 {
			values += uint64(part.Counts().Hits) // each value has the weight 1
		}
	}
	return values
}

// Release returns the memory of the counts to the aggregator, which reuses it for another cycle.
// Afterwards the caller can use only the field Delivery. A second call does nothing.
func (s *Sealed) Release() {
	if s.release != nil {
		s.release()
	}
	s.release = nil
	s.Origins = nil
	s.Keys = nil
	s.Objectives = nil
	s.tables = nil
	s.merged = nil
}

// Delivery is the future outcome of one sealed cycle. The exporters set it. Clients that requested a
// flush wait for it.
type Delivery struct {
	done      chan struct{}
	err       error
	onDoubt   func(isInDoubt bool) // see SetInDoubt; can be nil
	onSettled func()               // see Settle; can be nil
}

// NewDelivery returns an unresolved delivery without callbacks.
func NewDelivery() *Delivery { return &Delivery{done: make(chan struct{})} }

// NewWatchedDelivery returns a delivery without an outcome. Its method SetInDoubt calls onDoubt, and
// its method Settle calls onSettled.
func NewWatchedDelivery(onDoubt func(isInDoubt bool), onSettled func()) *Delivery {
	return &Delivery{done: make(chan struct{}), onDoubt: onDoubt, onSettled: onSettled}
}

// Resolve records the outcome of the delivery: nil if all destinations have accepted all spans. It ends
// Wait with this outcome, and settles the delivery. Exporters call it once, or else call Answer and
// then Settle.
func (d *Delivery) Resolve(err error) {
	d.Settle()
	d.Answer(err)
}

// Answer ends Wait with the given outcome. The exporters can still deliver spans until they call
// Settle.
func (d *Delivery) Answer(err error) {
	d.err = err
	close(d.done)
}

// SetInDoubt records whether a destination may have spans of the cycle. Exporters call it when that
// changes: before anything is sent, and never after Settle. Calls can come from any goroutine, but
// one at a time.
func (d *Delivery) SetInDoubt(isInDoubt bool) {
	if d.onDoubt != nil {
		d.onDoubt(isInDoubt)
	}
}

// Settle records that every span of the cycle has its outcome.
func (d *Delivery) Settle() {
	if d.onSettled != nil {
		d.onSettled()
	}
}

// Wait returns the outcome, or the error of ctx if that ends first.
func (d *Delivery) Wait(ctx context.Context) error {
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isFinished reports whether the outcome is known.
func (d *Delivery) isFinished() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// Deliveries are the deliveries that a requested flush waits for: that of its own cycle, and those
// of earlier cycles without an outcome, which can contain spans that a client published just before
// the end of an interval.
type Deliveries []*Delivery

// Wait waits for all deliveries, and returns the first error in the order of r. A delivery that is not
// finished when ctx ends counts as failed, with the error of ctx.
func (r Deliveries) Wait(ctx context.Context) (first error) {
	for _, d := range r {
		err := d.Wait(ctx)
		if first == nil {
			first = err
		}
	}
	return first
}

// settledCycles determines the first cycle that is not settled. A cycle is settled when all of its spans are
// delivered or given up. Cycles settle in any order.
type settledCycles struct {
	mu             sync.Mutex
	firstUnsettled uint64
	settledEarly   map[uint64]struct{} // settled cycles after firstUnsettled; exporters limit their number
	changed        chan struct{}       // closed, and replaced, when firstUnsettled increases
}

func newSettledCycles() settledCycles {
	return settledCycles{settledEarly: map[uint64]struct{}{}, changed: make(chan struct{})}
}

// add records that a cycle (a set of spans that are exported together) is settled: all of its spans are
// delivered or given up. If the cycle is firstUnsettled, add increases firstUnsettled to the next cycle that
// is not settled, and closes s.changed.
func (s *settledCycles) add(cycle uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cycle != s.firstUnsettled {
		s.settledEarly[cycle] = struct{}{}
		return
	}
	s.firstUnsettled++
	for s.wasSettledEarly(s.firstUnsettled) {
		delete(s.settledEarly, s.firstUnsettled)
		s.firstUnsettled++
	}
	close(s.changed) // wakes all goroutines that wait for the change
	s.changed = make(chan struct{})
}

// wasSettledEarly reports whether a cycle was settled before an earlier one.
func (s *settledCycles) wasSettledEarly(cycle uint64) bool {
	_, isSettled := s.settledEarly[cycle]
	return isSettled
}

// first returns the first cycle that is not settled, and a channel that is closed when this changes.
func (s *settledCycles) first() (firstUnsettled uint64, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.firstUnsettled, s.changed
}
