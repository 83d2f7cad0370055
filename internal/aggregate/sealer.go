package aggregate

import (
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
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

// sealer is the goroutine that moves the cycles on. It alone opens and seals.
type sealer struct {
	aggregator *Aggregator
	requests   chan chan Reported
	clears     chan struct{}
	stop       chan struct{}
	done       chan struct{}

	// What was handed on and has had no outcome yet, oldest first: as many as the
	// flush keeps waiting, which its own limits bound.
	open Reported
}

// run seals at every boundary of the wall clock, and in between when asked to.
func (s *sealer) run() {
	defer close(s.done)
	var pending []chan Reported
	var lastReport time.Time
	reports := 0 // in this interval
	timer := time.NewTimer(0)
	defer timer.Stop()
	boundary := nextBoundary(time.Now(), s.aggregator.config.FlushInterval)
	for {
		wake := time.Until(boundary)
		if len(pending) > 0 && reports < maxReports {
			wake = min(wake, time.Until(lastReport.Add(reportSpacing)))
		}
		timer.Reset(wake)
		select {
		case request := <-s.requests:
			pending = append(pending, request)
			continue
		case <-s.clears:
			s.clear()
			continue
		case <-s.stop:
			s.sealLast()
			s.answer(pending)
			return
		case <-timer.C:
		}
		now := time.Now()
		due := !wall(now).Before(boundary)
		asked := len(pending) > 0 && reports < maxReports && now.Sub(lastReport) >= reportSpacing
		switch {
		case due:
			reports = 0
		case asked:
			lastReport = now
			reports++
		}
		if due || asked {
			s.seal(due)
			s.answer(pending)
			pending = pending[:0]
		}
		// Counted anew from the wall clock each time, so that neither a slow seal
		// nor a step of the clock makes the cycles drift.
		boundary = nextBoundary(time.Now(), s.aggregator.config.FlushInterval)
	}
}

func (s *sealer) answer(pending []chan Reported) {
	for _, request := range pending {
		request <- slices.Clone(s.open)
	}
}

// seal opens the next cycle, closes the current one and hands it on. At the end of
// an interval the next one begins with it.
func (s *sealer) seal(isBoundary bool) {
	a := s.aggregator
	number := a.cycles.current.Load()
	next := a.cycles.slots[(number+1)%2]
	<-next.released // the flush may still be reading what this memory held two cycles ago
	if isBoundary {
		a.intervals.Begin()
	}
	next.open(number+1, time.Now(), a.intervals)
	a.cycles.current.Store(number + 1)
	s.handOn(a.cycles.slots[number%2])
}

// sealLast closes the current cycle with none after it, and the drainers.
func (s *sealer) sealLast() {
	a := s.aggregator
	number := a.cycles.current.Load()
	a.cycles.current.Store(closedCycle)
	s.handOn(a.cycles.slots[number%2])
	for _, d := range a.drainers {
		d.ring.Send(ring.Signal{Kind: ring.Stop})
		<-d.done
	}
}

// clear empties the current cycle's tables, and tells the receiver how many
// snapshots were given up, for its books. The cycle goes on with its keys.
func (s *sealer) clear() {
	a := s.aggregator
	number := a.cycles.current.Load()
	s.signal(ring.Signal{Kind: ring.Clear, Arg: number})
	sealed := NewSealed(number, time.Now(), time.Now(), a.config.BucketWidth, nil, nil)
	for _, d := range a.drainers {
		sealed.Cleared += d.cleared
	}
	if merged := a.cycles.slots[number%2].merged; merged != nil {
		sealed.Cleared += merged.clear()
	}
	a.config.Deliver(sealed)
}

// signal sends one to every drainer, and returns when all have answered.
func (s *sealer) signal(signal ring.Signal) {
	for _, d := range s.aggregator.drainers {
		// The sealer is the only sender and waits for each answer, so the side
		// channel can't be full.
		if !d.ring.Send(signal) {
			panic("BUG: a ring's side channel is full of signals that nobody else sends")
		}
	}
	for _, d := range s.aggregator.drainers {
		<-d.reported
	}
}

// handOn collects every drainer's table of a cycle that is not current any more
// and gives them away.
func (s *sealer) handOn(c *Cycle) {
	a := s.aggregator
	a.cycles.waitForReaders(c.number)
	s.signal(ring.Signal{Kind: ring.Report, Arg: c.number})
	origins, keys := c.registry.Contents()
	sealed := NewSealed(c.number, c.opened, time.Now(), a.config.BucketWidth, origins, keys, c.tables...)
	sealed.release, sealed.Merged = c.recycle, c.merged
	for _, table := range c.tables {
		table.held.Store(0) // from here on the receiver's books hold them
	}
	if c.merged != nil {
		c.merged.held.Store(0)
	}
	s.open = append(slices.DeleteFunc(s.open, (*Delivery).resolved), sealed.Delivery)
	a.sealed.Inc()
	a.lastSeal.Store(time.Now())
	a.config.Deliver(sealed)
}

// open makes the memory of a released cycle the one of a new cycle.
func (c *Cycle) open(number uint64, now time.Time, intervals *registry.Intervals) {
	c.number, c.opened = number, now
	c.window = NewWindow(number, now, c.width)
	c.interval, c.registry = intervals.Number(), intervals.Registry()
	for _, table := range c.tables {
		table.Open(now)
	}
	if c.merged != nil {
		c.merged.open(now)
	}
}

// recycle empties the cycle's memory and lets it be opened again.
func (c *Cycle) recycle() {
	for _, table := range c.tables {
		table.Reset()
	}
	if c.merged != nil {
		c.merged.reset()
	}
	c.released <- struct{}{}
}

// nextBoundary is the first multiple of the interval on the wall clock after now.
func nextBoundary(now time.Time, interval time.Duration) time.Time {
	now = wall(now)
	ns := now.UnixNano()
	return now.Add(interval - time.Duration(ns%int64(interval)))
}

// wall strips the monotonic reading: a boundary is a wall-clock time, and must
// be compared as one even after the clock was stepped.
func wall(t time.Time) time.Time { return t.Round(0) }
