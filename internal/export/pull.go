package export

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// pullDestination is a destination that is scraped. Each cycle is published as running totals, and
// its spans count as flushed once a complete scrape contains them. It has no queue and sends nothing.
type pullDestination struct {
	exporter Exporter
	cfg      Config
	stats    *statsRecorder
	scrapes  *Scrapes
	isClosed atomic.Bool
}

func newPull(cfg Config, x Exporter) *pullDestination {
	d := &pullDestination{exporter: x, cfg: cfg, stats: newStatsRecorder(x.HasValues), scrapes: x.Pull.Scrapes}
	d.scrapes.recordDelivered = func(delivered Amount) { d.stats.recordDelivered(delivered, 0) }
	d.scrapes.haveSettled = make(chan struct{}, 1)
	return d
}

// accept implements Destination. It publishes a cycle to be scraped, unless the destination is closed.
func (d *pullDestination) accept(c *Cycle) {
	entry := d.stats.addToHistory(c)
	if d.isClosed.Load() {
		d.rejectCycle(c, entry)
		return
	}
	began := time.Now()
	encoded := d.publish(c)
	encodeTime := c.mergeTime + time.Since(began)
	d.stats.changeEntry(entry, func(f *Flush) {
		f.Unencodable = encoded.Unencodable
		f.EncodeSeconds = encodeTime.Seconds()
		f.Payloads = 1
		f.Outcomes[ResultAccepted] = 1
		f.SettleSeconds = time.Since(f.Sealed).Seconds()
	})
	d.stats.change(func(s *Stats) {
		s.Totals = encoded.Totals
		s.Payloads[ResultAccepted]++
	})
}

// publish adds a cycle to the scraped statistics. Spans that could not be encoded are counted as unsent.
func (d *pullDestination) publish(c *Cycle) Encoded {
	cycle := *c // a copy, because numbers differ between destinations
	cycle.Number = c.Cycle
	cycle.FirstUndelivered = d.scrapes.unscraped.firstNumber(c.Cycle)
	d.scrapes.add(c, d.cfg.RetryAge) // before Publish, because then a scrape can contain the cycle
	encoded := d.exporter.Pull.Publish(&cycle)
	lost := d.scrapes.unscraped.removeLost(c.Cycle, encoded.lost())
	recordUnencodable(d.cfg.Log, d.stats, &d.exporter, c, lost)
	return encoded
}

// rejectCycle counts the spans of a cycle, one export interval, as unsent, because the destination is closed. It
// records the error in entry, which describes the cycle in the history, and reports it to the clients that wait for
// the delivery of the cycle.
func (d *pullDestination) rejectCycle(c *Cycle, entry *Flush) {
	d.stats.recordUnsent(Shutdown, c.amount)
	d.stats.changeEntry(entry, func(f *Flush) {
		f.Outcomes[Shutdown.result()] = 1 // counts the cycle as one payload
		f.LastError = errClosed.Error()
	})
	c.state.recordError(errClosed)
}

// recordSealed implements Destination. It counts the spans and values of a new cycle (export interval) as pending, and
// discarded ones as unsent. It returns true if accept must be called with the cycle.
func (d *pullDestination) recordSealed(pending, discarded Amount) (mustAccept bool) {
	d.stats.recordSealed(pending, discarded)
	return pending.Spans > 0
}

// close implements Destination.
func (d *pullDestination) close() { d.isClosed.Store(true) }

// finishSending implements Destination. It waits until ctx ends, or until every published export interval has been
// scraped completely. If there has never been a complete scrape, it returns immediately.
func (d *pullDestination) finishSending(ctx context.Context) {
	if !d.scrapes.isScraped.Load() {
		return
	}
	for d.scrapes.unscraped.hasAny() {
		select {
		case <-d.scrapes.haveSettled:
		case <-ctx.Done():
			return
		}
	}
}

// settleRemaining implements Destination. At shutdown, it counts the spans of each published export interval as delivered if
// a complete scrape contains them, and otherwise as unsent.
func (d *pullDestination) settleRemaining() {
	if lastCycle, hasScraped := d.scrapes.lastScraped(); hasScraped {
		d.scrapes.settleUpTo(lastCycle)
	}
	unscraped := d.scrapes.unscraped.removeUpTo(math.MaxUint64) // all
	for _, c := range unscraped {
		d.stats.recordUnsent(Shutdown, c.amount)
		c.settle()
	}
}

// Name implements Destination.
func (d *pullDestination) Name() string { return d.exporter.Name }

// URL implements Destination.
func (d *pullDestination) URL() string { return d.exporter.URL }

// Stats implements Destination. A destination that is scraped is always reachable.
func (d *pullDestination) Stats() Stats {
	s := d.stats.read()
	s.QueueMaxBytes = d.cfg.RetryBytes
	s.MaxAge = d.cfg.RetryAge
	s.Reachable = true
	s.IsAccepting = true
	return s
}

// Flushes implements Destination.
func (d *pullDestination) Flushes() []Flush { return d.stats.flushes() }

const (
	// settleDelay is the time between the return of a scrape's handler and the settlement of its cycles.
	// In this time net/http writes the last bytes of the response, and cannot report whether it could.
	settleDelay = time.Second

	// maxUnscraped is the maximum number of cycles that Scrapes tracks. The oldest are merged.
	maxUnscraped = 512

	// ScrapesBytes is the maximum memory of Scrapes.
	ScrapesBytes = maxUnscraped * 512
)

// Scrapes tracks the published cycles that no complete scrape contains yet. A complete scrape
// settles the cycles that it contains. A cycle is in doubt while such a scrape is being written.
// After the retry age a cycle is settled as far as clients and a crash are concerned, but its spans
// stay pending until they are scraped. The exporter of a pull destination owns it; the zero value is
// ready to use. It is safe for concurrent use.
type Scrapes struct {
	unscraped       undeliveredCycles // the totals after each cycle are a snapshot with the cycle's number
	recordDelivered func(Amount)      // counts the spans and values of scraped cycles; set by newPull
	haveSettled     chan struct{}     // holds a token after cycles were settled
	nextAfterScrape atomic.Uint64     // number after the last cycle in a complete scrape; 0 if there is none
	isScraped       atomic.Bool       // whether there was a complete scrape, with or without a cycle
}

// add adds a cycle, an export interval whose spans are about to be published for scrapes. It reports success to the
// clients that wait for the delivery of the cycle, because a scrape can be far off. After retryAge, a crash of the daemon
// no longer counts as a loss of the spans, even if they have not been scraped.
func (s *Scrapes) add(c *Cycle, retryAge time.Duration) {
	number := c.Cycle
	s.unscraped.add(newUndeliveredCycle(c, number, c.End))
	s.unscraped.answerUpTo(number, nil)             // nil means success
	merged := s.unscraped.mergeOldest(maxUnscraped) // limits the memory
	for _, oldest := range merged {
		oldest.settle() // the cycle that it was merged into accounts for its spans
	}
	time.AfterFunc(retryAge, func() { s.unscraped.settleUpTo(number) })
}

// FirstUnscraped returns the number of the first cycle, or export interval, that has not been scraped completely. It
// returns math.MaxUint64 if there is no such cycle.
func (s *Scrapes) FirstUnscraped() uint64 { return s.unscraped.firstNumber(math.MaxUint64) }

// Begin records that a response to a scrape is about to be written. The response contains the spans of all cycles,
// or export intervals, up to lastCycle. The caller must call end after the last write, with isComplete true if all
// writes have succeeded.
func (s *Scrapes) Begin(lastCycle uint64) (end func(isComplete bool)) {
	states := s.unscraped.statesUpTo(lastCycle)
	for _, c := range states {
		c.recordSendStart()
	}
	return func(isComplete bool) {
		for _, c := range states {
			c.recordSendEnd(isComplete)
		}
		if isComplete {
			s.recordComplete(lastCycle)
		}
	}
}

// RecordEmpty records a complete scrape before the first export interval has ended. Its response contained no spans, but
// it shows that the destination is scraped. So a shutdown waits for the next scrape.
func (s *Scrapes) RecordEmpty() { s.isScraped.Store(true) }

// recordComplete records that a complete scrape contains the spans of all cycles, or export intervals, up to lastCycle.
// It counts these spans as delivered after settleDelay.
func (s *Scrapes) recordComplete(lastCycle uint64) {
	s.isScraped.Store(true)
	raise(&s.nextAfterScrape, lastCycle+1)
	time.AfterFunc(settleDelay, func() { s.settleUpTo(lastCycle) })
}

// lastScraped returns the number of the last export interval whose spans are in a complete scrape. It returns false
// if no complete scrape contains an interval.
func (s *Scrapes) lastScraped() (cycle uint64, hasScraped bool) {
	next := s.nextAfterScrape.Load()
	if next == 0 {
		return 0, false
	}
	return next - 1, true
}

// raise sets a to value, unless a is greater already.
func raise(a *atomic.Uint64, value uint64) {
	for {
		current := a.Load()
		if current >= value || a.CompareAndSwap(current, value) {
			return
		}
	}
}

// settleUpTo counts the spans of all published cycles, or export intervals, up to lastCycle as delivered. If the daemon
// crashes later, the next daemon does not report these spans as lost.
func (s *Scrapes) settleUpTo(lastCycle uint64) {
	for _, c := range s.unscraped.removeUpTo(lastCycle) {
		s.recordDelivered(c.amount)
		c.settle()
	}
	notify(s.haveSettled) // pullDestination.finishSending waits for this
}
