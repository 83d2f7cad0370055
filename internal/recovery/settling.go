package recovery

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Settling knows which of a publisher's spans lie in which cycles, so far as is needed to
// say how many have had their outcome: by the end of each cycle that it was in, how many
// spans it had been given. The publisher writes it, any goroutine may ask.
type Settling struct {
	file *File                  // nil of a publisher of which the next daemon needs to know nothing
	own  atomic.Pointer[record] // in the file until Close, or of nobody else
	mu   sync.Mutex
}

// NewSettling is that of a publisher which the next daemon is to know, unless the file is nil or has
// no room for one more.
func NewSettling(f *File) *Settling {
	s := &Settling{}
	if f != nil {
		if own := f.take(); own != nil {
			s.file = f
			s.own.Store(own)
			return s
		}
	}
	s.own.Store(new(record))
	return s
}

// take makes a record that is of nobody that of a connection. Its id comes last, which says that the
// rest is its own.
func (f *File) take() *record {
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

// Token names the connection to the next daemon, "" where that will know nothing of it.
func (s *Settling) Token() string {
	if s.file == nil || s.file.mapped == nil {
		return ""
	}
	return fmt.Sprintf("%s-%x", s.file.name(), s.own.Load().id.Load())
}

// Cycle is the one that the publisher was in last.
func (s *Settling) Cycle() uint64 { return s.own.Load().current.Load() - 1 }

// Join notes that the publisher is in a cycle, if it was in another one before. A mark is whole
// before it counts, and the cycle changes last: until then the spans behind the marks are none.
func (s *Settling) Join(cycle uint64) {
	r := s.own.Load()
	if r.current.Load() == cycle+1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended := r.current.Load(); ended > 0 {
		head := r.head.Load()
		isFull := head-r.tail.Load() == marks
		if isFull {
			head--
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

// Receive notes that the publisher was given spans. It comes while the publisher is inside the cycle
// that has them: that can't be sealed before.
func (s *Settling) Receive(spans uint64) {
	received := &s.own.Load().received
	received.Store(received.Load() + spans)
}

// Received is how many it was given. Any goroutine may ask.
func (s *Settling) Received() uint64 { return s.own.Load().received.Load() }

// Through is how many spans have had their outcome where all cycles before that one have. Spans are
// settled before their mark goes.
func (s *Settling) Through(cycle uint64) uint64 {
	given := s.Received() // first: by now it has joined the cycles of all of them
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
		r.settled.Store(given)
	}
	return r.settled.Load()
}

// Close ends the publisher's use. What is not settled of a connection its client has left to this
// daemon, unless this daemon is what ends it.
func (s *Settling) Close() {
	if s.file == nil || s.file.stopping.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, rest := s.own.Load(), new(record)
	before := r.settled.Load()
	for m := range r.ranges {
		for m.first < m.last && s.file.layout.stateOf(m.first) == settled {
			m.first++
		}
		s.file.Count(m.first, Socket, m.upTo-before)
		before = m.upTo
	}
	rest.settled.Store(r.settled.Load())
	rest.received.Store(r.received.Load())
	rest.current.Store(^uint64(0)) // no cycle that may end: nothing more is settled
	s.own.Store(rest)              // it may still be asked
	r.id.Store(0)                  // last: a kill before leaves the spans in both, and none in neither
}
