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
	file *File                  // nil if the publisher has no record in the file
	own  atomic.Pointer[record] // record in the file; after Close, or without a file, in ordinary memory
	mu   sync.Mutex             // guards the marks
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

// allocate clears a free record, assigns an ID to it and returns it. It returns nil if no record is
// free. The ID is stored last, because it marks the other words as valid.
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
		r.tail.Store(r.head.Load()) // removes all marks
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

// EnterCycle records that the publisher is in a cycle. If the publisher was in another cycle before,
// that cycle gets a mark. If all marks are in use, the last mark is extended by that cycle. The order
// of stores matters for a crash: a mark is complete before head includes it, and current changes
// last.
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

// SettledUpTo returns the number of settled spans. All cycles before the given one are settled. It
// removes the marks of these cycles, after it has added their spans to the settled ones.
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

// Close is called when the publisher has ended. If the client has disconnected, it no longer keeps
// its unsettled spans. Close then counts them in the cycles that contain them, and frees the record.
// If the daemon has closed the connection (SetStopping), the client keeps the spans, and Close does
// nothing.
func (s *SettlementTracker) Close() {
	if s.file == nil || s.file.stopping.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, private := s.own.Load(), new(record)
	counted := r.settled.Load()
	for m := range r.ranges {
		firstUnsettled := m.first
		for firstUnsettled < m.last && s.file.layout.stateOf(firstUnsettled) == settled {
			firstUnsettled++
		}
		s.file.Count(firstUnsettled, Socket, m.upTo-counted)
		counted = m.upTo
	}
	private.settled.Store(r.settled.Load())
	private.received.Store(r.received.Load())
	private.current.Store(^uint64(0)) // never settled, so the counts stay as they are
	s.own.Store(private)              // for later reads
	r.id.Store(0)                     // last: after a crash before it, spans are in both places, not in neither
}
