package main

import (
	"sync"
	"time"
)

// output receives the metrics of a tool, as the tool's destination does.
type output interface {
	// setUnreachable makes the destination unreachable, or reachable again.
	setUnreachable(isUnreachable bool) error
	// restarted notes that the tool runs in another process, as a new pod of a deployment would.
	restarted()
	close()
}

// ledger adds up the spans in a tool's output. All outputs fill one.
type ledger struct {
	mu     sync.Mutex
	counts counts
	last   time.Time // last time that new spans arrived
	gap    time.Duration
}

func newLedger() *ledger { return &ledger{counts: counts{}} }

// begin starts the measurement of gaps.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
}

// add adds the spans of one scrape or payload.
func (l *ledger) add(more counts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hasNew := false
	for name, n := range more {
		l.counts[name] += n
		hasNew = hasNew || n > 0
	}
	if now := time.Now(); hasNew && !l.last.IsZero() {
		l.gap = max(l.gap, now.Sub(l.last))
		l.last = now
	}
}

func (l *ledger) total() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts.total()
}
