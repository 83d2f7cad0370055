package aggregate

import (
	"slices"
	"time"
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
	requests   chan chan Reported
	clears     chan struct{}
	stop       chan struct{}
	done       chan struct{}

	// The goroutine's own.
	boundary   time.Time       // the end of this interval
	pending    []chan Reported // reports that wait for a seal
	lastReport time.Time       // when there was a seal for some
	reports    int             // seals for reports in this interval
	unresolved Reported        // deliveries without an outcome, oldest first; the flush bounds their number
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
		case request := <-s.requests:
			s.pending = append(s.pending, request)
			continue
		case <-s.clears:
			s.aggregator.clear()
			continue
		case <-s.stop:
			s.resolveLater(s.aggregator.sealLast())
			return
		case <-timer.C:
		}
		switch now := time.Now(); {
		case !wall(now).Before(s.boundary):
			s.reports = 0
			s.resolveLater(s.aggregator.seal(true))
		case s.mayReport() && now.Sub(s.lastReport) >= reportSpacing:
			s.reports++
			s.lastReport = now
			s.resolveLater(s.aggregator.seal(false))
		}
		s.boundary = nextBoundary(time.Now(), interval)
	}
}

// untilDue is how long it is up to the next seal.
func (s *sealer) untilDue() time.Duration {
	due := time.Until(s.boundary)
	if s.mayReport() {
		due = min(due, time.Until(s.lastReport.Add(reportSpacing)))
	}
	return due
}

func (s *sealer) mayReport() bool { return len(s.pending) > 0 && s.reports < maxReports }

// resolveLater answers the pending reports: theirs are the delivery of the cycle that has
// just been sealed, and those of earlier ones that have no outcome yet.
func (s *sealer) resolveLater(d *Delivery) {
	s.unresolved = append(slices.DeleteFunc(s.unresolved, (*Delivery).resolved), d)
	for _, request := range s.pending {
		request <- slices.Clone(s.unresolved)
	}
	s.pending = s.pending[:0]
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
