package flush

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Payload is one encoded request on its way to a destination.
type Payload struct {
	Origin span.Origin // of all that is in it; without a name where it is of several
	Body   []byte
	Spans  uint64 // that its body stands for; 0 of running totals
	Totals Totals // that its body says, nil where it has deltas

	// Of the Destination only.
	sequence uint64 // in the order in which they were made, from 0
	born     time.Time
	cycle    *cycleDelivery
	copy     *totalsCopy // that it is of; nil of deltas
	flush    *Flush      // the cycle's line in the history
	tries    int         // how often the destination was asked to take it
	lastErr  error       // why it did not at the last of them
}

// Totals are the running totals that a payload says. The sender and the exporter use them.
type Totals interface {
	// Arrive notes that the destination has them, and returns the spans that it did not
	// have before.
	Arrive() (spans uint64)
}

// wait counts a payload among those that have no outcome.
func (p *Payload) wait() {
	if p.copy != nil {
		p.copy.add()
	} else {
		p.cycle.add()
	}
}

// says is the cycles of which it has spans.
func (p *Payload) says() cycleDeliveries {
	if p.copy != nil {
		return p.copy.of.saidBy(p.copy.number)
	}
	return cycleDeliveries{p.cycle}
}

// resolve notes that all of a payload has its outcome.
func (p *Payload) resolve(err error) {
	if p.copy != nil {
		p.copy.resolve(err)
	} else {
		p.cycle.resolve(err)
	}
}
