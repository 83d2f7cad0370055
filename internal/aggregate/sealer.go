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
)

// reportSpacing is the least time between two seals that tracers asked for, and
// maxReports the most of them within one interval; who asks after that waits for
// its end. A seal costs every origin a payload, so a tracer that asks in a loop
// must not set the pace.
const (
	reportSpacing = time.Second
	maxReports    = 3
)

// sealer is the goroutine that ends one cycle and begins the next: at the end of each
// interval, and in between for reports.
type sealer struct {
	aggregator *Aggregator
	reports    reports
	clears     chan struct{}
	stop       chan struct{}
	done       chan struct{}

	// The goroutine's own.
	boundary   time.Time // the end of this interval
	lastReport time.Time // when there was a seal for a report
	reported   int       // seals for reports in this interval
	unresolved Reported  // deliveries without an outcome, oldest first; the flush bounds their number
}

// run seals until the stop. The boundary is computed anew from the wall clock each time,
// so that neither a slow seal nor a step of the clock makes the cycles drift.
func (s *sealer) run() {
	defer close(s.done)
	interval := s.aggregator.config.FlushInterval
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.boundary = nextBoundary(time.Now(), interval)
	for {
		timer.Reset(s.untilDue())
		select {
		case <-s.reports.asked:
			continue
		case <-s.clears:
			s.aggregator.clear()
			continue
		case <-s.stop:
			report := s.reports.take()
			s.seal(s.aggregator.cycles.current.Swap(closedCycle), report)
			for _, d := range s.aggregator.drainers {
				d.ring.Send(ring.Signal{Kind: ring.Stop})
				<-d.done
			}
			return
		case <-timer.C:
		}
		switch now := time.Now(); {
		case !wall(now).Before(s.boundary):
			s.reported = 0
			report := s.reports.take()
			s.seal(s.aggregator.nextCycle(true), report)
		case s.mayReport() && now.Sub(s.lastReport) >= reportSpacing:
			s.reported++
			s.lastReport = now
			report := s.reports.take()
			s.seal(s.aggregator.nextCycle(false), report)
		}
		s.boundary = nextBoundary(time.Now(), interval)
	}
}

func (s *sealer) untilDue() time.Duration {
	due := time.Until(s.boundary)
	if s.mayReport() {
		due = min(due, time.Until(s.lastReport.Add(reportSpacing)))
	}
	return due
}

func (s *sealer) mayReport() bool { return s.reported < maxReports && s.reports.wanted() }

// nextCycle begins a cycle, at a boundary with a new interval, and returns the number of
// the one that it ends.
func (a *Aggregator) nextCycle(isBoundary bool) (ended uint64) {
	ended = a.cycles.current.Load()
	next := a.cycles.at(ended + 1)
	<-next.released // the flush may still be reading what this memory held two cycles ago
	if isBoundary {
		a.intervals.Begin()
	}
	next.begin(ended+1, time.Now(), a.intervals)
	a.config.Running.Begin(ended + 1)
	a.cycles.current.Store(ended + 1)
	return ended
}

// seal delivers a cycle that is not current any more, once everything of it is counted.
// The report, where one was asked for, promises its delivery, and those of earlier ones
// that have no outcome yet.
func (s *sealer) seal(number uint64, report *report) {
	a := s.aggregator
	a.cycles.awaitExits(number)
	a.signal(ring.Signal{Kind: ring.Report, Arg: number})
	c := a.cycles.at(number)
	origins, keys := c.registry.Contents()
	sealed := NewSealed(number, c.started, time.Now(), c.width, origins, keys, c.tables...)
	sealed.merged, sealed.release = c.merged, c.release
	sealed.Delivery.settled = func() {
		a.config.Running.Settle(number)
		a.outcomes.add(number)
	}
	sealed.Delivery.doubt = func(is bool) { a.config.Running.Doubt(number, is) }
	for _, table := range c.tables {
		table.held.Store(0) // from here on the receiver's books hold them
	}
	if c.merged != nil {
		c.merged.held.Store(0)
	}
	s.unresolved = append(slices.DeleteFunc(s.unresolved, (*Delivery).resolved), sealed.Delivery)
	a.sealed.Inc()
	a.lastSeal.Store(time.Now())
	a.config.Deliver(sealed)
	if report != nil {
		report.delivered = slices.Clone(s.unresolved)
		close(report.sealed)
	}
}

// clear empties the current cycle's tables, and tells the receiver how many
// snapshots were given up, for its books. The cycle goes on with its keys.
func (a *Aggregator) clear() {
	number := a.cycles.current.Load()
	a.signal(ring.Signal{Kind: ring.Clear, Arg: number})
	sealed := NewSealed(number, time.Now(), time.Now(), a.config.BucketWidth, nil, nil)
	for _, d := range a.drainers {
		sealed.Cleared += d.cleared
	}
	if merged := a.cycles.at(number).merged; merged != nil {
		sealed.Cleared += merged.clear()
	}
	a.config.Deliver(sealed)
}

// signal sends one to every drainer, and returns when all have answered.
func (a *Aggregator) signal(signal ring.Signal) {
	for _, d := range a.drainers {
		// The sealer is the only sender and waits for each answer, so the side
		// channel can't be full.
		if !d.ring.Send(signal) {
			panic("BUG: a ring's side channel is full of signals that nobody else sends")
		}
	}
	for _, d := range a.drainers {
		<-d.reported
	}
}

// nextBoundary is the first multiple of the interval on the wall clock after now.
func nextBoundary(now time.Time, interval time.Duration) time.Time {
	return wall(now).Add(interval - time.Duration(now.UnixNano()%int64(interval)))
}

// wall strips the monotonic reading: a boundary is a wall-clock time, and must
// be compared as one even after the clock was stepped.
func wall(t time.Time) time.Time { return t.Round(0) }

// Sealed is one cycle that nobody writes any more: every drainer's table of it, and
// what the interval's registry held of origins and keys. It belongs to the receiver
// until Release.
type Sealed struct {
	Cycle   uint64
	Start   time.Time           // of the cycle
	End     time.Time           // when it was sealed
	Width   time.Duration       // of a bucket
	Origins []span.Origin       // by OriginID
	Keys    []registry.KeyEntry // by KeyID

	// Cleared is how many snapshots a clear gave up, which are in no table. Then
	// there is nothing else here.
	Cleared uint64

	// Delivery is resolved when every payload of the cycle has had its outcome.
	Delivery *Delivery

	tables  []*Table // one a drainer; the same key may have a row in several
	merged  *Merged  // nil where nothing is merged
	release func()
}

// NewSealed makes a sealed cycle of its parts.
func NewSealed(cycle uint64, start, end time.Time, width time.Duration,
	origins []span.Origin, keys []registry.KeyEntry, tables ...*Table,
) *Sealed {
	return &Sealed{
		Cycle: cycle, Start: start, End: end, Width: width,
		Origins: origins, Keys: keys, tables: tables, Delivery: NewDelivery(),
	}
}

// Parts visits all that was counted.
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

// Mappings are those of the parts, by MappingID.
func (s *Sealed) Mappings() []sketch.Mapping {
	if s.merged == nil {
		return []sketch.Mapping{sketch.OwnMapping}
	}
	return s.merged.mappings
}

// Spans is the number of snapshots in all tables, counted from their rows.
func (s *Sealed) Spans() (spans uint64) {
	for part := range s.Parts {
		spans += part.Counts().Spans
	}
	return spans
}

// Release gives the tables back for reuse; the next interval but one does the same
// to the registry. Nothing of Sealed may be touched afterwards, except Delivery.
func (s *Sealed) Release() {
	if s.release != nil {
		s.release()
	}
	s.release, s.Origins, s.Keys, s.tables, s.merged = nil, nil, nil, nil, nil
}

// Delivery is a promise: what became of one sealed cycle. It is how a tracer
// that asked for a report learns of the outcome without anything downstream
// knowing the tracer.
type Delivery struct {
	done    chan struct{}
	err     error
	doubt   func(is bool) // is told whether it is doubtful, when that changes; nil for nobody
	settled func()        // is told when every span has its outcome; nil for nobody
}

// NewDelivery returns a promise that is not kept yet.
func NewDelivery() *Delivery { return &Delivery{done: make(chan struct{})} }

// NewWatchedDelivery returns one that tells of its doubts and of its settlement.
func NewWatchedDelivery(doubt func(is bool), settled func()) *Delivery {
	return &Delivery{done: make(chan struct{}), doubt: doubt, settled: settled}
}

// Resolve keeps the promise; nil means that every destination accepted everything.
// It is called once.
func (d *Delivery) Resolve(err error) {
	d.Answer(err)
	d.Settle()
}

// Answer tells who waits how it went. It is the first half of Resolve, for spans that are
// held all the same and may arrive later.
func (d *Delivery) Answer(err error) {
	d.err = err
	close(d.done)
}

// Doubt says that spans of the cycle may be with a destination, or again that certainly none
// is. It is called when that changes, before anything leaves, never behind Settle, and by any
// goroutine, one at a time.
func (d *Delivery) Doubt(is bool) {
	if d.doubt != nil {
		d.doubt(is)
	}
}

// Settle says that every span of the cycle has its outcome. It is the second half of
// Resolve.
func (d *Delivery) Settle() {
	if d.settled != nil {
		d.settled()
	}
}

// Wait returns the outcome, or the context's error if that ends first.
func (d *Delivery) Wait(ctx context.Context) error {
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Delivery) resolved() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// Reported is the promise of a report that was asked for: its own cycle's delivery, and those
// of earlier cycles that were still on their way. Spans that a tracer published just before
// may be in one of those, if an interval ended in between.
type Reported []*Delivery

// Wait returns the first outcome that is no success once all are known, or the
// context's error if that ends first.
func (r Reported) Wait(ctx context.Context) (first error) {
	for _, d := range r {
		if err := d.Wait(ctx); first == nil {
			first = err
		}
	}
	return first
}

// outcomes knows how far the cycles have had their outcome, which comes in any order.
type outcomes struct {
	mu      sync.Mutex
	through uint64              // all cycles below have had theirs
	ahead   map[uint64]struct{} // those above that have; the flush bounds their number
	changed chan struct{}       // closed when through rises
}

func newOutcomes() outcomes {
	return outcomes{ahead: map[uint64]struct{}{}, changed: make(chan struct{})}
}

// add notes that a cycle has had its outcome.
func (o *outcomes) add(cycle uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ahead[cycle] = struct{}{}
	before := o.through
	for _, has := o.ahead[o.through]; has; _, has = o.ahead[o.through] {
		delete(o.ahead, o.through)
		o.through++
	}
	if o.through != before {
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// settled is how far they have, and a channel that is closed when that rises.
func (o *outcomes) settled() (through uint64, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.through, o.changed
}
