package aggregate

import "context"

// Delivery is a promise: what became of one sealed cycle. It is how a tracer
// that asked for a report learns of the outcome without anything downstream
// knowing the tracer.
type Delivery struct {
	done    chan struct{}
	err     error
	doubt   func(is bool) // is told whether it is doubtful, when that changes; nil for nobody
	settled func()        // is told when every span has its outcome; nil for nobody
}

// NewDelivery returns a promise that is not kept yet.
func NewDelivery() *Delivery { return &Delivery{done: make(chan struct{})} }

// NewWatchedDelivery returns one that tells of its doubts and of its settlement.
func NewWatchedDelivery(doubt func(is bool), settled func()) *Delivery {
	return &Delivery{done: make(chan struct{}), doubt: doubt, settled: settled}
}

// Resolve keeps the promise; nil means that every destination accepted everything.
// It is called once.
func (d *Delivery) Resolve(err error) {
	d.Answer(err)
	d.Settle()
}

// Answer tells who waits how it went. It is the first half of Resolve, for spans that are
// held all the same and may arrive later.
func (d *Delivery) Answer(err error) {
	d.err = err
	close(d.done)
}

// Doubt says that spans of the cycle may be with a destination, or again that certainly none
// is. It is called when that changes, before anything leaves, never behind Settle, and by any
// goroutine, one at a time.
func (d *Delivery) Doubt(is bool) {
	if d.doubt != nil {
		d.doubt(is)
	}
}

// Settle says that every span of the cycle has its outcome. It is the second half of
// Resolve.
func (d *Delivery) Settle() {
	if d.settled != nil {
		d.settled()
	}
}

// Wait returns the outcome, or the context's error if that ends first.
func (d *Delivery) Wait(ctx context.Context) error {
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Delivery) resolved() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// Reported is the promise of a report that was asked for: its own cycle's delivery, and those
// of earlier cycles that were still on their way. Spans that a tracer published just before
// may be in one of those, if an interval ended in between.
type Reported []*Delivery

// Wait returns the first outcome that is no success once all are known, or the
// context's error if that ends first.
func (r Reported) Wait(ctx context.Context) (first error) {
	for _, d := range r {
		if err := d.Wait(ctx); first == nil {
			first = err
		}
	}
	return first
}
