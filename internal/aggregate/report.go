package aggregate

import (
	"errors"
	"sync"
)

// reports is where those who ask for a report meet the sealer. All who ask before a seal
// wait for one answer, so whoever gives up leaves nothing behind, however many do.
type reports struct {
	asked chan struct{} // holds a token when somebody has asked

	mu   sync.Mutex
	next *report // nil where nobody asks
}

// report is the answer of one seal to all who asked for it.
type report struct {
	sealed    chan struct{} // closed when the rest is known
	delivered Reported
}

func newReports() reports { return reports{asked: make(chan struct{}, 1)} }

// ask joins those who wait for the next seal.
func (r *reports) ask() *report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &report{sealed: make(chan struct{})}
		select {
		case r.asked <- struct{}{}:
		default: // a token is there already
		}
	}
	return r.next
}

// wanted says whether anybody asks.
func (r *reports) wanted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next != nil
}

// take returns the report that a seal is to answer, nil where nobody asks. It is called
// while the cycle that is to be sealed is still the current one: whoever asks later may
// have published into the next.
func (r *reports) take() *report {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.next
	r.next = nil
	return taken
}

// ErrStopped is what a report gets after the last cycle.
var ErrStopped = errors.New("the daemon is stopping: the last report is on its way")
