package aggregate

import "sync"

// outcomes knows how far the cycles have had their outcome, which comes in any order.
type outcomes struct {
	mu      sync.Mutex
	through uint64              // all cycles below have had theirs
	ahead   map[uint64]struct{} // those above that have; the flush bounds their number
	changed chan struct{}       // closed when through rises
}

func newOutcomes() outcomes {
	return outcomes{ahead: map[uint64]struct{}{}, changed: make(chan struct{})}
}

// add notes that a cycle has had its outcome.
func (o *outcomes) add(cycle uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ahead[cycle] = struct{}{}
	before := o.through
	for _, has := o.ahead[o.through]; has; _, has = o.ahead[o.through] {
		delete(o.ahead, o.through)
		o.through++
	}
	if o.through != before {
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// settled is how far they have, and a channel that is closed when that rises.
func (o *outcomes) settled() (through uint64, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.through, o.changed
}
