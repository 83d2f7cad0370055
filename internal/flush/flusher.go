package flush

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// Flusher takes sealed cycles to every destination. See the package comment.
type Flusher struct {
	destinations []*Destination
	busiest      atomic.Pointer[Busiest]

	measuring sync.Mutex // guards the next one
	durations Histogram

	accepting     sync.Mutex // guards the next two, and that nothing is accepted after Close
	merger        Merger
	busiestReader busiestReader
}

// New starts a flusher with a destination for each exporter. Close ends it.
func New(cfg Config, exporters ...Exporter) (*Flusher, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &Flusher{durations: newHistogram(.0001, .0005, .001, .005, .01, .05, .1, .5, 1)}
	f.busiest.Store(f.busiestReader.busiest(&aggregate.Sealed{}, nil))
	for _, exporter := range exporters {
		f.destinations = append(f.destinations, newDestination(cfg, exporter))
	}
	return f, nil
}

// Accept takes a sealed cycle over: merges it once, has each destination encode it,
// and releases its memory. It never waits for a destination. One that is looked for and not found yet
// has no part in it.
func (f *Flusher) Accept(sealed *aggregate.Sealed) {
	f.accepting.Lock()
	defer f.accepting.Unlock()
	began, spans, delivery := time.Now(), sealed.Spans(), sealed.Delivery
	var to []*Destination
	for _, d := range f.destinations {
		if !hasJoined(d.exporter) {
			d.books.change(func(s *Stats) { s.BeforeFound += sealed.Cleared + spans })
			continue
		}
		d.books.hold(sealed.Cleared + spans)
		d.books.unsent(NotWanted, sealed.Cleared)
		if spans > 0 || d.takesIdle() {
			to = append(to, d)
		}
	}
	if len(to) == 0 && spans == 0 {
		sealed.Release()
		delivery.Resolve(nil)
		return
	}
	// It counts one payload more while they are made, so that it is not resolved
	// before all of them are.
	c := &cycle{Sealed: sealed, rows: f.merger.Merge(sealed), spans: spans}
	c.delivery = &cycleDelivery{delivery: delivery}
	c.delivery.add()
	if spans > 0 {
		f.busiest.Store(f.busiestReader.busiest(sealed, c.rows))
	}
	c.merging = time.Since(began)
	for _, d := range to {
		d.accept(c)
	}
	f.merger.Forget()
	sealed.Release()
	f.measuring.Lock()
	f.durations.observe(time.Since(began).Seconds())
	f.measuring.Unlock()
	c.delivery.resolve(nil)
}

// Close tries to send what still waits, each payload once and without pauses, until
// ctx ends. What is left then is unsent for Shutdown. It returns when every payload has
// its outcome and no goroutine is left.
func (f *Flusher) Close(ctx context.Context) {
	f.accepting.Lock()
	for _, d := range f.destinations {
		d.close()
	}
	f.accepting.Unlock()
	var ending sync.WaitGroup
	for _, d := range f.destinations {
		ending.Go(func() { d.end(ctx) })
	}
	ending.Wait()
	f.accepting.Lock()
	defer f.accepting.Unlock()
	for _, d := range f.destinations {
		d.settle()
	}
}

// Destinations are all of them, in the order of their exporters.
func (f *Flusher) Destinations() []*Destination { return f.destinations }

// Durations are of merging and encoding one sealed cycle for all destinations, in
// seconds.
func (f *Flusher) Durations() Histogram {
	f.measuring.Lock()
	defer f.measuring.Unlock()
	return f.durations.clone()
}

// Busiest is that of the last sealed cycle with spans. It is not to be written to.
func (f *Flusher) Busiest() Busiest { return *f.busiest.Load() }
