package recovery

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// SettlementTracker tracks how many spans of a publisher are settled, that is delivered or given up.
// For each cycle (one export interval) of the publisher, it records how many spans the publisher had
// received in total at the end of the cycle. Only the publisher adds spans; any goroutine can read.
type SettlementTracker struct {
	file *File  // nil if the publisher has no record in the file
	slot int    // index of the record in the file
	id   uint64 // ID of the record, a part of the token

	received     atomic.Uint64 // number of received spans
	cyclePlusOne atomic.Uint64 // number of the publisher's last cycle, plus one; 0 before the first cycle

	mu         sync.Mutex  // guards the rest, and writing the record
	settled    uint64      // number of spans that are delivered or given up
	openRanges []spanRange // unsettled spans of cycles before the last one, oldest first
	isClosed   bool
}

// Maximum lengths of openRanges. If more cycles are unsettled, the last range covers all others.
const (
	maxOpenRanges = 64 // enough for the default retry age

	// Publishers for HTTP requests have no record. Their senders keep no spans, so exact ranges would be useless.
	maxRangesWithoutRecord = 8
)

// TrackerBytes is the maximum memory of a tracker beyond its own size.
const TrackerBytes = maxOpenRanges * int(unsafe.Sizeof(spanRange{}))

// NewSettlementTracker returns a tracker for a new publisher. The tracker counts how many of the publisher's spans
// are received, and how many of these are delivered or given up. It saves both numbers in a record of the recovery
// file f, which the next daemon reads after a crash. Without a file, or a free record in it, the tracker saves
// nothing.
func NewSettlementTracker(f *File) *SettlementTracker {
	s := &SettlementTracker{}
	if f == nil || f.isUnwritable.Load() {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	slot := slices.Index(f.isRecordInUse, false)
	isFull := slot < 0
	if isFull {
		return s
	}
	f.isRecordInUse[slot] = true
	f.lastRecordID++
	s.file = f
	s.slot = slot
	s.id = f.lastRecordID
	s.save()
	return s
}

// save writes the tracker to its record in the recovery file, if it has one.
func (s *SettlementTracker) save() {
	if s.file == nil {
		return
	}
	r := record{
		id:           s.id,
		received:     s.received.Load(),
		settled:      s.settled,
		cyclePlusOne: s.cyclePlusOne.Load(), // 0 before the first cycle
	}
	r.setRanges(s.openRanges)
	var encoded [recordBytes]byte
	s.file.write(recordOffset(s.slot), r.appendTo(encoded[:0]))
}

// setRanges copies ranges into the record. If there are more than rangesPerRecord, it extends the last copied range
// to the end of the last given one.
func (r *record) setRanges(ranges []spanRange) {
	copied := copy(r.ranges[:], ranges)
	r.count = uint64(copied)
	hasRoomForAll := copied == len(ranges)
	if hasRoomForAll {
		return
	}
	lastCopied := &r.ranges[copied-1]
	lastGiven := ranges[len(ranges)-1]
	lastCopied.lastCycle = lastGiven.lastCycle
	lastCopied.lastSpan = lastGiven.lastSpan
}

// Token returns a name by which the next daemon finds the spans of this connection, or "" if the
// recovery file does not contain them.
func (s *SettlementTracker) Token() string {
	if s.file == nil || s.file.isUnwritable.Load() {
		return ""
	}
	return fmt.Sprintf("%s-%x", s.file.name, s.id)
}

// Cycle returns the last cycle that the publisher has entered. It must have entered one.
func (s *SettlementTracker) Cycle() uint64 { return s.cyclePlusOne.Load() - 1 }

func (s *SettlementTracker) setCycle(cycle uint64) { s.cyclePlusOne.Store(cycle + 1) }

// hasCycle reports whether the publisher has entered a cycle.
func (s *SettlementTracker) hasCycle() bool { return s.cyclePlusOne.Load() > 0 }

// EnterCycle records that spans from now on are counted in the given cycle (an export interval, or a
// part of one). Spans received before belong to the cycle of the previous call. If both cycles are the
// same, EnterCycle does nothing. Only the publisher calls it, so the check does not need s.mu.
func (s *SettlementTracker) EnterCycle(cycle uint64) {
	isSameCycle := s.hasCycle() && s.Cycle() == cycle
	if isSameCycle {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endCycle()
	s.setCycle(cycle)
	s.save()
}

// endCycle adds a range with the spans that were received in the last cycle, if there are any.
func (s *SettlementTracker) endCycle() {
	received := s.received.Load()
	hasNewSpans := received > s.spansBeforeCycle()
	if hasNewSpans {
		s.addRange(s.Cycle(), received)
	}
}

// addRange appends a range to s.openRanges: the spans of the given cycle, which end with number lastSpan. If
// there are too many ranges, addRange extends the last one instead. SettleBefore then settles all spans of this range
// together, when the last of its cycles is settled.
func (s *SettlementTracker) addRange(cycle, lastSpan uint64) {
	maxRanges := maxOpenRanges
	if s.file == nil {
		maxRanges = maxRangesWithoutRecord
	}
	if len(s.openRanges) < maxRanges {
		s.openRanges = append(s.openRanges, spanRange{firstCycle: cycle, lastCycle: cycle, lastSpan: lastSpan})
		return
	}
	newest := &s.openRanges[len(s.openRanges)-1]
	newest.lastCycle = cycle
	newest.lastSpan = lastSpan
}

// spansBeforeCycle returns the number of spans received before the current cycle.
func (s *SettlementTracker) spansBeforeCycle() uint64 {
	if len(s.openRanges) == 0 {
		return s.settled
	}
	return s.openRanges[len(s.openRanges)-1].lastSpan
}

// Receive adds spans to the number of received spans, also in the recovery file. It must be called before the
// cycle (one export interval) of the spans can end. So no span can be exported before the file contains it.
func (s *SettlementTracker) Receive(spans uint64) {
	if s.file == nil {
		s.received.Add(spans)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	total := s.received.Add(spans)
	s.file.store(recordOffset(s.slot)+receivedOffset, total)
}

// Received returns the number of spans that the publisher has received. Any goroutine can call it.
func (s *SettlementTracker) Received() uint64 { return s.received.Load() }

// SettleBefore records that all spans in cycles (export intervals) before the given one are settled, that is
// delivered or given up. It returns how many spans of the publisher are settled.
func (s *SettlementTracker) SettleBefore(cycle uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return s.settled
	}
	previous := s.settled
	for len(s.openRanges) > 0 && s.openRanges[0].lastCycle < cycle {
		s.settled = s.openRanges[0].lastSpan
		s.openRanges = slices.Delete(s.openRanges, 0, 1)
	}
	isLastCycleSettled := s.hasCycle() && s.Cycle() < cycle
	if isLastCycleSettled { // s.openRanges does not contain its spans until the publisher enters the next cycle
		s.settled = s.received.Load()
	}
	if s.settled != previous {
		s.save()
	}
	return s.settled
}

// Close ends the tracker of a client that has disconnected. The client cannot resend its spans. If this daemon
// crashes, the next daemon reports the undelivered ones as lost. Close does nothing during a shutdown of the
// daemon, because clients resend undelivered spans to the next daemon.
func (s *SettlementTracker) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || s.file.stopping.Load() {
		return
	}
	// The order matters: a crash between these two lines must not lose the spans from the file.
	s.countUnsettled()
	s.file.free(s.slot)
	s.isClosed = true
	s.openRanges = nil
	s.file = nil
}

// countUnsettled adds the unsettled spans to the counts of the cycles in which they were received.
func (s *SettlementTracker) countUnsettled() {
	counted := s.settled
	for _, r := range s.openRanges {
		s.file.Count(r.lastCycle, Socket, r.lastSpan-counted)
		counted = r.lastSpan
	}
	if s.hasCycle() {
		s.file.Count(s.Cycle(), Socket, s.received.Load()-counted)
	}
}

// free makes a record of the file available to another connection.
func (f *File) free(slot int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write(recordOffset(slot), make([]byte, wordBytes))
	f.isRecordInUse[slot] = false
}
