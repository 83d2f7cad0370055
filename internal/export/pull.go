package export

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// pullDestination is a destination that is scraped: each cycle is published, and counts as flushed from
// then on. It has no queue and sends nothing.
type pullDestination struct {
	exporter Exporter
	cfg      Config
	stats    *statsRecorder
	isClosed atomic.Bool
}

func newPull(cfg Config, x Exporter) *pullDestination {
	return &pullDestination{exporter: x, cfg: cfg, stats: newStatsRecorder()}
}

// accept publishes a cycle. It is open before scrapes can have it.
func (d *pullDestination) accept(c *Cycle) {
	flush := d.stats.beginFlush(c)
	if d.isClosed.Load() {
		d.stats.unsent(Shutdown, c.spans)
		d.stats.changeFlush(flush, func(f *Flush) {
			f.Outcomes[Shutdown.result()], f.Said = 1, errClosed.Error()
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
func (d *pullDestination) join(cleared, spans uint64) (takesPart bool) {
	d.stats.hold(cleared + spans)
	d.stats.unsent(NotWanted, cleared)
	return spans > 0
}

// close implements Destination.
func (d *pullDestination) close() { d.isClosed.Store(true) }

// end implements Destination.
func (d *pullDestination) end(context.Context) {}

// settle settles cycles that were not scraped, when the daemon stops.
func (d *pullDestination) settle() { d.exporter.Pull.Scrapes.settle(math.MaxUint64) }

// Name implements Destination.
func (d *pullDestination) Name() string { return d.exporter.Name }

// URL implements Destination.
func (d *pullDestination) URL() string { return d.exporter.URL }

// Stats implements Destination.
func (d *pullDestination) Stats() Stats {
	s := d.stats.read()
	s.QueueMaxBytes, s.MaxAge = d.cfg.RetryBytes, d.cfg.RetryAge
	s.Reachable, s.Takes = true, true
	return s
}

// Flushes implements Destination.
func (d *pullDestination) Flushes() []Flush { return d.stats.flushes() }

// tailTime is how long after its handler the end of a response may be written.
const tailTime = time.Second

// Scrapes tracks the published cycles that no complete scrape has had. A cycle is settled once a scrape
// with its spans was written whole, or after the retry age. While a scrape with its spans is being written
// it is in doubt. The zero value is ready to use, by any goroutine.
type Scrapes struct{ open openCycles }

// publish adds a cycle that is about to be published. Clients that wait for it are answered.
func (s *Scrapes) publish(c *Cycle, retryAge time.Duration) {
	s.open.add(openCycle{state: c.state, number: c.Cycle, isAnswered: true})
	c.state.answer(nil)
	time.AfterFunc(retryAge, func() { s.settle(c.Cycle) })
}

// Begin records that the totals of all cycles up to one are about to be written to a scrape. The function
// that it returns is called once, with whether everything was written, except for the end of the response.
func (s *Scrapes) Begin(cycle uint64) (end func(isWhole bool)) {
	states := s.open.states(cycle)
	for _, c := range states {
		c.beginSend()
	}
	return func(isWhole bool) {
		for _, c := range states {
			c.endSend(isWhole)
		}
		if isWhole {
			time.AfterFunc(tailTime, func() { s.settle(cycle) })
		}
	}
}

// settle settles the cycles up to one.
func (s *Scrapes) settle(cycle uint64) {
	for _, c := range s.open.take(cycle) {
		c.state.settle()
	}
}
