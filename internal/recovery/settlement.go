package recovery

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// SettlementTracker tracks how many of a publisher's spans are settled. For each cycle that the
// publisher was in, it records the total number of spans that the publisher had received by the end
// of the cycle. Only the publisher adds spans; any goroutine can read.
type SettlementTracker struct {
	file *File // nil if the publisher has no record in the file
	slot int   // of the record
	id   uint64

	received  atomic.Uint64 // number of received spans
	nextCycle atomic.Uint64 // last cycle that the publisher was in, plus one; 0 before the first

	mu         sync.Mutex  // guards the rest, and writing the record
	settled    uint64      // number of settled spans
	openRanges []spanRange // unsettled spans of earlier cycles, oldest first
	isClosed   bool
}

// maxOpenRanges is the maximum number of unsettled cycles that the tracker of a connection tells apart, enough for
// the default retry age. If more are unsettled, the last range covers the others. Trackers without a record
// have as many ranges as records.
const maxOpenRanges = 64

// TrackerBytes is the maximum memory of a tracker beyond its own size.
const TrackerBytes = maxOpenRanges * int(unsafe.Sizeof(spanRange{}))

// NewSettlementTracker returns the tracker of a new publisher. It is recorded in f for the next
// daemon, unless f is nil or full.
func NewSettlementTracker(f *File) *SettlementTracker {
	s := &SettlementTracker{}
	if f == nil || f.isUnwritable.Load() {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for slot, isUsed := range f.inUse {
		if !isUsed {
			f.inUse[slot] = true
			f.ids++
			s.file, s.slot, s.id = f, slot, f.ids
			s.save()
			break
		}
	}
	return s
}

// save writes the record to the file. If there are more ranges than fit, the last range of the record covers all
// remaining ones.
func (s *SettlementTracker) save() {
	if s.file == nil {
		return
	}
	r := record{id: s.id, received: s.received.Load(), settled: s.settled, current: s.nextCycle.Load()}
	r.count = uint64(copy(r.ranges[:], s.openRanges))
	if last := len(s.openRanges) - 1; last >= rangesPerRecord {
		r.ranges[rangesPerRecord-1].last, r.ranges[rangesPerRecord-1].upTo = s.openRanges[last].last, s.openRanges[last].upTo
	}
	var encoded [recordBytes]byte
	s.file.write(recordOffset(s.slot), r.appendTo(encoded[:0]))
}

// Token returns an identifier by which the next daemon finds the connection, or "" if it is not
// recorded.
func (s *SettlementTracker) Token() string {
	if s.file == nil || s.file.isUnwritable.Load() {
		return ""
	}
	return fmt.Sprintf("%s-%x", s.file.name, s.id)
}

// Cycle returns the last cycle that the publisher was in.
func (s *SettlementTracker) Cycle() uint64 { return s.nextCycle.Load() - 1 }

// EnterCycle records that the publisher is in a cycle. If the publisher was in another cycle before, the spans
// that it received there get a range. If all ranges are in use, the last one is extended by that cycle.
func (s *SettlementTracker) EnterCycle(cycle uint64) {
	ended := s.nextCycle.Load()
	if ended == cycle+1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if received := s.received.Load(); received > s.lastUpTo() {
		if isFull := len(s.openRanges) == maxOpenRanges || s.file == nil && len(s.openRanges) == rangesPerRecord; !isFull {
			s.openRanges = append(s.openRanges, spanRange{first: ended - 1})
		}
		last := &s.openRanges[len(s.openRanges)-1]
		last.last, last.upTo = ended-1, received
	}
	s.nextCycle.Store(cycle + 1)
	s.save()
}

// lastUpTo returns the number of spans in settled and open ranges. The others are in the current cycle.
func (s *SettlementTracker) lastUpTo() uint64 {
	if n := len(s.openRanges); n > 0 {
		return s.openRanges[n-1].upTo
	}
	return s.settled
}

// Receive records that the publisher has received spans. The publisher calls it while inside the
// cycle that counts them, so that this cycle can't be sealed before.
func (s *SettlementTracker) Receive(spans uint64) {
	if s.file == nil {
		s.received.Add(spans)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file.store(recordOffset(s.slot)+receivedOffset, s.received.Add(spans))
}

// Received returns the number of spans that the publisher has received. Any goroutine can call it.
func (s *SettlementTracker) Received() uint64 { return s.received.Load() }

// SettledUpTo returns the number of settled spans. All cycles before the given one are settled. It
// removes the ranges of these cycles.
func (s *SettlementTracker) SettledUpTo(cycle uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return s.settled
	}
	before, n := s.settled, 0
	for n < len(s.openRanges) && s.openRanges[n].last < cycle {
		s.settled = s.openRanges[n].upTo
		n++
	}
	s.openRanges = append(s.openRanges[:0], s.openRanges[n:]...)
	if s.nextCycle.Load() <= cycle {
		s.settled = s.received.Load()
	}
	if s.settled != before {
		s.save()
	}
	return s.settled
}

// Close is called when the publisher has ended. If the client has disconnected, it no longer keeps
// its unsettled spans. Close then counts them in the cycles that contain them, and frees the record last: after
// a crash in between, spans are in both places, not in neither. If the daemon has closed the connection
// (SetStopping), the client keeps the spans, and Close does nothing.
func (s *SettlementTracker) Close() {
	if s.file == nil || s.file.stopping.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	counted := s.settled
	for _, m := range s.openRanges {
		s.file.Count(m.last, Socket, m.upTo-counted)
		counted = m.upTo
	}
	if current := s.nextCycle.Load(); current > 0 {
		s.file.Count(current-1, Socket, s.received.Load()-counted)
	}
	s.file.free(s.slot)
	s.isClosed, s.openRanges, s.file = true, nil, nil
}

// free makes a record available to another connection.
func (f *File) free(slot int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write(recordOffset(slot), make([]byte, wordBytes))
	f.inUse[slot] = false
}
