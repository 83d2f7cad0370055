package flush

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// Destination is one place where statistics go.
type Destination interface {
	Name() string // in metrics, the log and status
	URL() string  // for operators, without credentials
	Stats() Stats
	Flushes() []Flush // the last ones, the newest first

	// join takes the spans of a sealed cycle into the stats, and reports whether accept must follow.
	join(cleared, spans uint64) (takesPart bool)
	accept(c *Cycle)

	// Shutdown, in this order: close has no more cycles accepted, end returns when nothing is sent any
	// more, and settle gives every cycle that is left its outcome.
	close()
	end(ctx context.Context)
	settle()
}

// Flusher hands sealed cycles to every destination. See the package comment.
type Flusher struct {
	destinations []Destination
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
	for _, x := range exporters {
		if x.Pull != nil {
			f.destinations = append(f.destinations, newPull(cfg, x))
			continue
		}
		d := newPush(cfg, x)
		d.start()
		f.destinations = append(f.destinations, d)
	}
	return f, nil
}

// Accept takes over a sealed cycle: it merges the cycle once, has each destination encode it, and releases
// its memory. It does not wait for destinations.
func (f *Flusher) Accept(sealed *aggregate.Sealed) {
	f.accepting.Lock()
	defer f.accepting.Unlock()
	began, spans, delivery := time.Now(), sealed.Spans(), sealed.Delivery
	var to []Destination
	for _, d := range f.destinations {
		if d.join(sealed.Cleared, spans) {
			to = append(to, d)
		}
	}
	if len(to) == 0 && spans == 0 {
		sealed.Release()
		delivery.Resolve(nil)
		return
	}
	c := &Cycle{
		Sealed: sealed, Rows: f.merger.Merge(sealed), spans: spans, state: &cycleState{delivery: delivery},
	}
	c.state.add() // resolved last, so that the cycle is not settled while payloads are still made
	if spans > 0 {
		f.busiest.Store(f.busiestReader.busiest(sealed, c.Rows))
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
	c.state.resolve(nil)
}

// Close tries to send queued payloads, each once and without pauses, until ctx ends. Spans that are left
// then are unsent for Shutdown. It returns when every payload has its outcome and no goroutine is left.
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

// Destinations are in the order of their exporters.
func (f *Flusher) Destinations() []Destination { return f.destinations }

// Durations are of merging and encoding one sealed cycle for all destinations, in seconds.
func (f *Flusher) Durations() Histogram {
	f.measuring.Lock()
	defer f.measuring.Unlock()
	return f.durations.clone()
}

// Busiest is of the last sealed cycle with spans. The caller does not write to it.
func (f *Flusher) Busiest() Busiest { return *f.busiest.Load() }
