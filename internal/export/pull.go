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
	d.scrapes.onScraped = func(spans uint64) { d.stats.recordDelivered(spans, 0) }
	d.scrapes.settled = make(chan struct{}, 1)
	return d
}

// accept implements Destination. It publishes a cycle. Before, it adds the cycle to d.scrapes,
// because a scrape can contain the cycle as soon as it is published.
func (d *pullDestination) accept(c *Cycle) {
	flush := d.stats.beginFlush(c)
	if d.isClosed.Load() {
		d.stats.recordUnsent(Shutdown, c.spans)
		d.stats.changeFlush(flush, func(f *Flush) {
			f.Outcomes[Shutdown.result()] = 1
			f.LastError = errClosed.Error()
		})
		c.state.recordError(errClosed)
		return
	}
	began := time.Now()
	cycle := *c // the other destinations have other numbers
	cycle.Number = c.Cycle
	cycle.FirstUnsettled = d.scrapes.open.firstOpen(c.Cycle)
	d.scrapes.add(c, d.cfg.RetryAge)
	encoded := d.exporter.Pull.Publish(&cycle)
	took := c.merging + time.Since(began)
	lost := d.scrapes.open.subtractLost(c.Cycle, encoded.Unencodable)
	recordUnencodable(d.cfg.Log, d.stats, &d.exporter, c, lost)
	d.stats.changeFlush(flush, func(f *Flush) {
		f.Unencodable = encoded.Unencodable
		f.EncodeSeconds = took.Seconds()
		f.Payloads = 1
		f.Outcomes[ResultAccepted] = 1
		f.SettleSeconds = time.Since(f.Sealed).Seconds()
	})
	d.stats.change(func(s *Stats) {
		s.Totals = encoded.Totals
		s.Payloads[ResultAccepted]++
	})
}

// join implements Destination.
func (d *pullDestination) join(cleared, spans uint64) (participates bool) {
	d.stats.addPending(cleared + spans)
	d.stats.recordUnsent(NotWanted, cleared)
	return spans > 0
}

// close implements Destination.
func (d *pullDestination) close() { d.isClosed.Store(true) }

// end implements Destination. It waits until complete scrapes contain all published cycles, or until
// ctx ends. If there has never been a complete scrape, it does not wait, because none is to be
// expected.
func (d *pullDestination) end(ctx context.Context) {
	for d.scrapes.scrapedBelow.Load() > 0 && d.scrapes.open.hasAny() {
		select {
		case <-d.scrapes.settled:
		case <-ctx.Done():
			return
		}
	}
}

// settle implements Destination. It settles all published cycles. Spans in a complete scrape count as
// delivered, and all others as unsent.
func (d *pullDestination) settle() {
	if scrapedBelow := d.scrapes.scrapedBelow.Load(); scrapedBelow > 0 {
		lastScraped := scrapedBelow - 1
		d.scrapes.settle(lastScraped)
	}
	unscraped := d.scrapes.open.removeUpTo(math.MaxUint64)
	for _, c := range unscraped {
		d.stats.recordUnsent(Shutdown, c.spans)
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
	open         openCycles         // the totals after each cycle are a snapshot with the cycle's number
	onScraped    func(spans uint64) // counts the spans of settled cycles; set by newPull
	settled      chan struct{}      // holds a token after cycles were settled
	scrapedBelow atomic.Uint64      // cycles below this number are in a complete scrape; 0 before the first
}

// add adds a cycle that is about to be published. Clients that wait for the cycle get their answer
// immediately, because they do not wait for a scrape. After retryAge the cycle is settled, even if it
// was not scraped.
func (s *Scrapes) add(c *Cycle, retryAge time.Duration) {
	added := openCycle{state: c.state, first: c.Cycle, number: c.Cycle, spans: c.spans, isAnswered: true}
	s.open.add(added)
	c.state.answerPart(nil)
	for _, merged := range s.open.mergeOldest(maxUnscraped) {
		merged.settle()
	}
	time.AfterFunc(retryAge, func() { s.open.settleUpTo(c.Cycle) })
}

// FirstUnscraped returns the number of the first cycle that no complete scrape contains. It returns
// math.MaxUint64 if there is no such cycle.
func (s *Scrapes) FirstUnscraped() uint64 { return s.open.firstOpen(math.MaxUint64) }

// Begin records that a response to a scrape is about to be written. The response contains the spans
// of all cycles up to the given one. After the last write, the caller must call end once, and report
// whether all writes have succeeded.
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
			raise(&s.scrapedBelow, cycle+1)
			time.AfterFunc(tailTime, func() { s.settle(cycle) })
		}
	}
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

// settle settles the open cycles up to the given one, and counts their spans as delivered.
func (s *Scrapes) settle(cycle uint64) {
	for _, c := range s.open.removeUpTo(cycle) {
		s.onScraped(c.spans)
		c.settle()
	}
	notify(s.settled)
}
