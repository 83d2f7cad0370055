package aggregate

import (
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ring"
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
