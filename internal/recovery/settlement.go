package recovery

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// SettlementTracker tracks how many of a publisher's spans are settled. For each cycle that the
// publisher was in, it records the total number of spans that the publisher had received by the end
// of the cycle. Only the publisher writes it; any goroutine can read it.
type SettlementTracker struct {
	file *File                  // nil if the publisher is not recorded in the file
	own  atomic.Pointer[record] // in the file until Close, or private
	mu   sync.Mutex
}

// NewSettlementTracker returns the tracker of a new publisher. It is recorded in f for the next
// daemon, unless f is nil or full.
func NewSettlementTracker(f *File) *SettlementTracker {
	s := &SettlementTracker{}
	if f != nil {
		if own := f.allocate(); own != nil {
			s.file = f
			s.own.Store(own)
			return s
		}
	}
	s.own.Store(new(record))
	return s
}

// allocate returns a free record and assigns an ID to it. The ID is stored last, because it marks
// the other words as valid.
func (f *File) allocate() *record {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.records {
		r := &f.records[i]
		if r.id.Load() != 0 {
			continue
		}
		r.received.Store(0)
		r.settled.Store(0)
		r.current.Store(0)
		r.tail.Store(r.head.Load())
		f.ids++
		r.id.Store(f.ids)
		return r
	}
	return nil
}

// Token returns an identifier by which the next daemon finds the connection, or "" if it is not
// recorded.
func (s *SettlementTracker) Token() string {
	if s.file == nil || s.file.mapped == nil {
		return ""
	}
	return fmt.Sprintf("%s-%x", s.file.name(), s.own.Load().id.Load())
}

// Cycle returns the last cycle that the publisher was in.
func (s *SettlementTracker) Cycle() uint64 { return s.own.Load().current.Load() - 1 }

// EnterCycle records that the publisher is in a cycle. If that is a new one, it adds a mark for the
// previous cycle, or extends the last mark if all are in use. The order of stores matters for a
// crash: a mark is complete before head includes it, and current changes last.
func (s *SettlementTracker) EnterCycle(cycle uint64) {
	r := s.own.Load()
	if r.current.Load() == cycle+1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended := r.current.Load(); ended > 0 {
		head := r.head.Load()
		if isFull := head-r.tail.Load() == marks; isFull {
			head-- // extend the last mark
		} else {
			r.marks[head%marks].first.Store(ended - 1)
		}
		m := &r.marks[head%marks]
		m.last.Store(ended - 1)
		m.upTo.Store(r.received.Load())
		r.head.Store(head + 1)
	}
	r.current.Store(cycle + 1)
}

// Receive records that the publisher has received spans. The publisher calls it while inside the
// cycle that counts them, so that this cycle can't be sealed before.
func (s *SettlementTracker) Receive(spans uint64) {
	received := &s.own.Load().received
	received.Store(received.Load() + spans)
}

// Received returns the number of spans that the publisher has received. Any goroutine can call it.
func (s *SettlementTracker) Received() uint64 { return s.own.Load().received.Load() }

// SettledUpTo returns the number of settled spans, given that all cycles before the given one are
// settled. It removes the marks of these cycles, each after settled includes its spans.
func (s *SettlementTracker) SettledUpTo(cycle uint64) uint64 {
	received := s.Received() // read first: the cycles of all these spans have been entered
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.own.Load()
	for tail := r.tail.Load(); tail < r.head.Load(); tail++ {
		m := &r.marks[tail%marks]
		if m.last.Load() >= cycle {
			break
		}
		r.settled.Store(m.upTo.Load())
		r.tail.Store(tail + 1)
	}
	if r.current.Load() <= cycle {
		r.settled.Store(received)
	}
	return r.settled.Load()
}

// Close ends the use by the publisher. When a client disconnects, its unsettled spans become the
// responsibility of this daemon, and are counted in the cycles that contain them. When the daemon
// closes the connection, the client keeps them, and Close does nothing.
func (s *SettlementTracker) Close() {
	if s.file == nil || s.file.stopping.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, private := s.own.Load(), new(record)
	counted := r.settled.Load()
	for m := range r.ranges {
		cycle := m.first
		for cycle < m.last && s.file.layout.stateOf(cycle) == settled {
			cycle++
		}
		s.file.Count(cycle, Socket, m.upTo-counted)
		counted = m.upTo
	}
	private.settled.Store(r.settled.Load())
	private.received.Store(r.received.Load())
	private.current.Store(^uint64(0)) // never settled, so the counts stay as they are
	s.own.Store(private)              // for later reads
	r.id.Store(0)                     // last: after a crash before it, spans are in both places, not in neither
}
