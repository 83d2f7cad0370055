package export

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// pullDestination is a destination that is scraped: each cycle is published, and its spans count as
// flushed from then on. It has no queue and sends nothing.
type pullDestination struct {
	exporter Exporter
	cfg      Config
	stats    *statsRecorder
	isClosed atomic.Bool
}

func newPull(cfg Config, x Exporter) *pullDestination {
	return &pullDestination{exporter: x, cfg: cfg, stats: newStatsRecorder()}
}

// accept implements Destination. It publishes a cycle, after it has added the cycle to Scrapes:
// a scrape can contain the cycle as soon as it is published.
func (d *pullDestination) accept(c *Cycle) {
	flush := d.stats.beginFlush(c)
	if d.isClosed.Load() {
		d.stats.unsent(Shutdown, c.spans)
		d.stats.changeFlush(flush, func(f *Flush) {
			f.Outcomes[Shutdown.result()], f.LastError = 1, errClosed.Error()
		})
		c.state.fail(errClosed)
		return
	}
	began := time.Now()
	d.exporter.Pull.Scrapes.publish(c, d.cfg.RetryAge)
	encoded := d.exporter.Pull.Publish(c)
	took := c.merging + time.Since(began)
	lost := uint64(0)
	for reason, spans := range encoded.Lost {
		lost += spans
		loseUnencoded(d.cfg.Log, d.stats, &d.exporter, c, reason, spans)
	}
	d.stats.changeFlush(flush, func(f *Flush) {
		f.Unencodable, f.EncodeSeconds = encoded.Lost[Unencodable], took.Seconds()
		f.Payloads, f.Outcomes[ResultAccepted], f.SettleSeconds = 1, 1, time.Since(f.Sealed).Seconds()
	})
	d.stats.change(func(s *Stats) {
		s.Totals = encoded.Totals
		s.Payloads[ResultAccepted]++
	})
	d.stats.delivered(c.spans-lost, 0)
}

// join implements Destination.
func (d *pullDestination) join(cleared, spans uint64) (participates bool) {
	d.stats.hold(cleared + spans)
	d.stats.unsent(NotWanted, cleared)
	return spans > 0
}

// close implements Destination.
func (d *pullDestination) close() { d.isClosed.Store(true) }

// end implements Destination.
func (d *pullDestination) end(context.Context) {}

// settle settles the cycles that were not scraped before shutdown.
func (d *pullDestination) settle() { d.exporter.Pull.Scrapes.settle(math.MaxUint64) }

// Name implements Destination.
func (d *pullDestination) Name() string { return d.exporter.Name }

// URL implements Destination.
func (d *pullDestination) URL() string { return d.exporter.URL }

// Stats implements Destination.
func (d *pullDestination) Stats() Stats {
	s := d.stats.read()
	s.QueueMaxBytes, s.MaxAge = d.cfg.RetryBytes, d.cfg.RetryAge
	s.Reachable, s.IsAccepting = true, true
	return s
}

// Flushes implements Destination.
func (d *pullDestination) Flushes() []Flush { return d.stats.flushes() }

// tailTime is the time between the return of a scrape's handler and the settlement of its cycles.
// In this time net/http writes the last bytes of the response, and cannot report whether it could.
const tailTime = time.Second

// Scrapes tracks the published cycles that no complete scrape contains yet. A cycle is settled
// after a complete scrape that contains its spans, or after the retry age. It is in doubt while
// such a scrape is being written. The zero value is ready to use. It is safe for concurrent use.
type Scrapes struct {
	open openCycles // the totals after each cycle are a snapshot with the cycle's number
}

// publish adds a cycle that is about to be published, and notifies the clients that wait for it. They
// do not wait for a scrape.
func (s *Scrapes) publish(c *Cycle, retryAge time.Duration) {
	s.open.add(openCycle{state: c.state, number: c.Cycle, isNotified: true})
	c.state.notifyClients(nil)
	time.AfterFunc(retryAge, func() { s.settle(c.Cycle) })
}

// Begin records that a scrape is about to be written. The scraped totals contain the spans of all
// cycles up to cycle. The handler of the scrape must call end once, after its last write. isComplete
// reports whether all writes succeeded.
func (s *Scrapes) Begin(cycle uint64) (end func(isComplete bool)) {
	states := s.open.statesUpTo(cycle)
	for _, c := range states {
		c.beginSend()
	}
	return func(isComplete bool) {
		for _, c := range states {
			c.endSend(isComplete)
		}
		if isComplete {
			time.AfterFunc(tailTime, func() { s.settle(cycle) })
		}
	}
}

// settle settles the open cycles up to the given one.
func (s *Scrapes) settle(cycle uint64) {
	for _, c := range s.open.removeUpTo(cycle) {
		c.state.settle()
	}
}
