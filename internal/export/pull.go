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
	d := &pullDestination{exporter: x, cfg: cfg, stats: newStatsRecorder(), scrapes: x.Pull.Scrapes}
	d.scrapes.onScraped = func(spans uint64) { d.stats.delivered(spans, 0) }
	d.scrapes.settled = make(chan struct{}, 1)
	return d
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
	cycle := *c
	cycle.Number, cycle.FirstUnsettled = c.Cycle, d.scrapes.open.firstUnsettled(c.Cycle)
	d.scrapes.publish(c, d.cfg.RetryAge)
	encoded := d.exporter.Pull.Publish(&cycle)
	took := c.merging + time.Since(began)
	lost := d.scrapes.open.subtractLost(encoded.Unencodable, c.Cycle)
	recordUnencoded(d.cfg.Log, d.stats, &d.exporter, c, lost)
	d.stats.changeFlush(flush, func(f *Flush) {
		f.Unencodable, f.EncodeSeconds = encoded.Unencodable, took.Seconds()
		f.Payloads, f.Outcomes[ResultAccepted], f.SettleSeconds = 1, 1, time.Since(f.Sealed).Seconds()
	})
	d.stats.change(func(s *Stats) {
		s.Totals = encoded.Totals
		s.Payloads[ResultAccepted]++
	})
}

// join implements Destination.
func (d *pullDestination) join(cleared, spans uint64) (participates bool) {
	d.stats.addPending(cleared + spans)
	d.stats.unsent(NotWanted, cleared)
	return spans > 0
}

// close implements Destination.
func (d *pullDestination) close() { d.isClosed.Store(true) }

// end implements Destination. It waits until a scrape contains the last cycle, unless nothing has
// ever scraped.
func (d *pullDestination) end(ctx context.Context) {
	for d.scrapes.scraped.Load() > 0 && d.scrapes.open.any() {
		select {
		case <-d.scrapes.settled:
		case <-ctx.Done():
			return
		}
	}
}

// settle implements Destination. The spans that no complete scrape contains are lost.
func (d *pullDestination) settle() {
	if n := d.scrapes.scraped.Load(); n > 0 {
		d.scrapes.settle(n - 1)
	}
	for _, c := range d.scrapes.open.removeUpTo(math.MaxUint64) {
		d.stats.unsent(Shutdown, c.spans)
		c.settle()
	}
}

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

const (
	// tailTime is the time between the return of a scrape's handler and the settlement of its cycles.
	// In this time net/http writes the last bytes of the response, and cannot report whether it could.
	tailTime = time.Second

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
	open      openCycles         // the totals after each cycle are a snapshot with the cycle's number
	onScraped func(spans uint64) // counts the spans of settled cycles; set by newPull
	settled   chan struct{}      // holds a token after cycles were settled
	scraped   atomic.Uint64      // cycles below this number are in a complete scrape; 0 before the first
}

// publish adds a cycle that is about to be published, and notifies the clients that wait for it. They
// do not wait for a scrape.
func (s *Scrapes) publish(c *Cycle, retryAge time.Duration) {
	s.open.add(openCycle{state: c.state, first: c.Cycle, number: c.Cycle, spans: c.spans, isNotified: true})
	c.state.notifyClients(nil)
	for _, removed := range s.open.mergeOldest(maxUnscraped) {
		removed.settle()
	}
	time.AfterFunc(retryAge, func() { s.open.settleUpTo(c.Cycle) })
}

// FirstUnscraped returns the number of the first cycle that no complete scrape contains.
func (s *Scrapes) FirstUnscraped() uint64 { return s.open.firstUnsettled(math.MaxUint64) }

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
			for n := s.scraped.Load(); n <= cycle && !s.scraped.CompareAndSwap(n, cycle+1); n = s.scraped.Load() {
			}
			time.AfterFunc(tailTime, func() { s.settle(cycle) })
		}
	}
}

// settle settles the open cycles up to the given one, which a complete scrape contains.
func (s *Scrapes) settle(cycle uint64) {
	for _, c := range s.open.removeUpTo(cycle) {
		s.onScraped(c.spans)
		c.settle()
	}
	notify(s.settled)
}
