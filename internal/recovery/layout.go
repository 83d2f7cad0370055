package recovery

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The file consists of words of eight bytes: the header, the cycles and the records. No cycle and no record
// crosses the border of a page, because a kill can interrupt a write only there.
const (
	magic = 0x73706e72756e3033 // changes with the layout

	wordBytes     = 8
	headerBytes   = 16 * wordBytes
	cycleBytes    = 8 * wordBytes
	recordBytes   = 32 * wordBytes
	recordsOffset = 17 * 4096

	// maxCycles exceeds the number of unsettled cycles: four per interval, for the retry age.
	maxCycles = 1024

	// rangesPerRecord is enough for the cycles of a minute. If more cycles are
	// unsettled, the last range covers the remaining cycles. Its spans are in doubt unless all of its cycles have
	// the same state.
	rangesPerRecord = 8

	maxRecords = 1 << 17 // maximum number of records in a valid file
	maxSpans   = 1 << 44 // maximum number in a valid file, so that no sum overflows
)

// Bytes returns the length of a file for the given number of connections.
func Bytes(connections int) int { return recordsOffset + connections*recordBytes }

// DirectoryBytes returns the maximum length of all recovery files together.
func DirectoryBytes(connections int) int {
	const otherFiles = 3 // of the last crashed daemon, of the running daemon and of the next one
	return (maxKeptFiles + otherFiles) * Bytes(connections)
}

// header is the first part of the file. After a crash, later daemons change reportedStage and reportedAt.
type header struct {
	magic, records uint64
	startTime      uint64            // time when the daemon started, in nanoseconds since the epoch
	reportedStage  uint64            // a reportStage: which losses later daemons have reported
	reportedAt     uint64            // time of the first report, in nanoseconds since the epoch
	overwritten    [receivers]uint64 // by receiver: spans of overwritten cycles that were not delivered or given up
}

// The places of words that are written alone.
const (
	reportedOffset    = 3 * wordBytes // followed by reportedAt
	overwrittenOffset = 5 * wordBytes
)

func (h *header) words() []uint64 {
	return append([]uint64{h.magic, h.records, h.startTime, h.reportedStage, h.reportedAt}, h.overwritten[:]...)
}

// cycle is the entry of a cycle (an export interval, or a part of one) in the file. The file has
// maxCycles entries, and each new cycle overwrites the oldest one.
type cycle struct {
	stateWord uint64            // number and state of the cycle, see newStateWord
	spans     [receivers]uint64 // by receiver: spans of the cycle that no sender keeps, so that a crash loses them
}

// cycleOffset returns the position of a cycle slot in the file, in bytes.
func cycleOffset(slot uint64) int64 { return headerBytes + int64(slot)*cycleBytes }

// spansOffset returns the position of the number of spans of a receiver within a cycle slot.
func spansOffset(slot uint64, receiver int) int64 {
	const stateWordBytes = wordBytes
	return cycleOffset(slot) + stateWordBytes + int64(receiver)*wordBytes
}

// record contains, for one connection, which spans were counted in which cycles (export intervals).
type record struct {
	id           uint64 // 0 if the record is free
	outcomesSent uint64 // 1 if a later daemon has sent the outcomes of the spans to the client
	received     uint64 // number of received spans
	settled      uint64 // number of spans that are settled, that is delivered or given up
	cyclePlusOne uint64 // number of the connection's last cycle, plus one; 0 before the first
	count        uint64 // number of used ranges
	ranges       [rangesPerRecord]spanRange
}

// hasClientReturned reports whether the client has reconnected to a later daemon and knows the outcomes of its spans.
func (r *record) hasClientReturned() bool { return r.outcomesSent == 1 }

// The places of words of a record that are written alone.
const (
	outcomesSentOffset = 1 * wordBytes
	receivedOffset     = 2 * wordBytes
)

// spanRange is a range of a connection's spans, and the cycles that contain them. Spans are numbered from
// 1 in the order of reception. The range begins after the previous range and ends with lastSpan.
type spanRange struct{ firstCycle, lastCycle, lastSpan uint64 }

// recordOffset returns the position of a record in the file, in bytes.
func recordOffset(slot int) int64 { return recordsOffset + int64(slot)*recordBytes }

// appendTo appends the bytes of the record.
func (r *record) appendTo(to []byte) []byte {
	to = appendWords(to, r.id, r.outcomesSent, r.received, r.settled, r.cyclePlusOne, r.count)
	for _, spans := range r.ranges {
		to = appendWords(to, spans.firstCycle, spans.lastCycle, spans.lastSpan)
	}
	return to
}

func appendWords(to []byte, words ...uint64) []byte {
	for _, word := range words {
		to = binary.NativeEndian.AppendUint64(to, word)
	}
	return to
}

// allRanges returns the ranges of the record and the range of the connection's last cycle, the oldest first.
func (r *record) allRanges() []spanRange {
	ranges := slices.Clone(r.ranges[:r.count])
	if r.cyclePlusOne == 0 { // the connection has sent no spans
		return ranges
	}
	lastCycle := r.cyclePlusOne - 1
	return append(ranges, spanRange{firstCycle: lastCycle, lastCycle: lastCycle, lastSpan: r.received})
}

// check returns an error if the fields of the record contradict each other, for example if more spans
// are settled than received. The file is damaged in this case.
func (r *record) check() error {
	isFlagValid := r.outcomesSent <= 1 // the file contains 0 or 1
	areSpansValid := r.settled <= r.received && r.received-r.settled <= maxSpans
	areRangesValid := r.count <= rangesPerRecord && r.areRangesValid()
	if isFlagValid && areSpansValid && areRangesValid {
		return nil
	}
	return fmt.Errorf("read record: %+v is invalid", *r)
}

// areRangesValid reports whether the ranges are in order, and end before the last cycle.
func (r *record) areRangesValid() bool {
	previousSpan := uint64(0)
	for _, spans := range r.ranges[:r.count] {
		areCyclesValid := spans.firstCycle <= spans.lastCycle && spans.lastCycle < r.cyclePlusOne
		areSpansValid := previousSpan <= spans.lastSpan && spans.lastSpan <= r.received
		if !areCyclesValid || !areSpansValid {
			return false
		}
		previousSpan = spans.lastSpan
	}
	return true
}

// cycleState is the delivery state of a cycle, the spans of an export interval.
type cycleState uint64

const (
	stateOpen    cycleState = iota // no destination has any of it
	stateInDoubt                   // a destination may have some of it
	stateSettled                   // every span has its outcome
)

// stateBits is the number of bits for the state in a state word. The other bits are the number of
// the cycle, so both are written in one operation.
const stateBits = 2

// newStateWord returns the state word for the number and state of a cycle.
func newStateWord(number uint64, s cycleState) uint64 { return number<<stateBits | uint64(s) }

// numberIn returns the number of the cycle in a state word.
func numberIn(stateWord uint64) uint64 { return stateWord >> stateBits }

// stateIn returns the state of the cycle in a state word.
func stateIn(stateWord uint64) cycleState { return cycleState(stateWord & (1<<stateBits - 1)) }

// contents is the part of a file before the records.
type contents struct {
	header
	cycles [maxCycles]cycle
}

// read reads the part of file that precedes the records, and checks it. size is the length of the file.
// It returns an error if the file is damaged, or was written by another version of the daemon.
func (c *contents) read(file io.ReaderAt, size int64) error {
	encoded := make([]byte, recordsOffset)
	if _, err := file.ReadAt(encoded, 0); err != nil {
		return fmt.Errorf("read recovery file: %w", err)
	}
	c.header = decodeHeader(encoded)
	for slot := range c.cycles {
		encodedCycle := encoded[cycleOffset(uint64(slot)):]
		c.cycles[slot] = decodeCycle(encodedCycle)
	}
	return c.check(size)
}

// decodeHeader decodes the header at the start of encoded. It is the inverse of header.words.
func decodeHeader(encoded []byte) (h header) {
	words := wordReader{encoded}
	h.magic = words.next()
	h.records = words.next()
	h.startTime = words.next()
	h.reportedStage = words.next()
	h.reportedAt = words.next()
	for receiver := range h.overwritten {
		h.overwritten[receiver] = words.next()
	}
	return h
}

// decodeCycle decodes the cycle at the start of encoded. It is the inverse of cycle.words.
func decodeCycle(encoded []byte) (c cycle) {
	words := wordReader{encoded}
	c.stateWord = words.next()
	for receiver := range c.spans {
		c.spans[receiver] = words.next()
	}
	return c
}

// wordReader reads the words of the file, one after another.
type wordReader struct{ unread []byte }

func (r *wordReader) next() uint64 {
	word := binary.NativeEndian.Uint64(r.unread)
	r.unread = r.unread[wordBytes:]
	return word
}

// check returns an error if the contents can't have been written by this version of the daemon.
func (c *contents) check(size int64) error {
	isThisVersion := c.magic == magic && reportStage(c.reportedStage) <= allReported
	isComplete := c.records <= maxRecords && size == int64(Bytes(int(c.records)))
	if !isThisVersion || !isComplete {
		return errors.New("check recovery file: its layout or length is not that of this version")
	}
	if !arePossible(c.overwritten) {
		return errors.New("check recovery file: a cycle is invalid")
	}
	for slot := range c.cycles {
		if !c.cycles[slot].isValid(uint64(slot)) {
			return errors.New("check recovery file: a cycle is invalid")
		}
	}
	return nil
}

// isValid reports whether a daemon can have written c at the given index of the file. An index that was
// never used contains only zeros, and is valid.
func (c *cycle) isValid(slot uint64) bool {
	isUnused := *c == cycle{}
	belongsToSlot := numberIn(c.stateWord)%maxCycles == slot
	return isUnused || belongsToSlot && stateIn(c.stateWord) <= stateSettled && arePossible(c.spans)
}

// arePossible reports whether numbers of spans are small enough to be added without an overflow.
func arePossible(spans [receivers]uint64) bool {
	return slices.Max(spans[:]) <= maxSpans
}

// eachRecord calls visit for each used record of the file, with the index of the record. It stops at the
// first error of reading the file, checking a record, or visit, and returns this error.
func (c *contents) eachRecord(file io.ReaderAt, visit func(slot int, r *record) error) error {
	section := io.NewSectionReader(file, recordsOffset, int64(c.records)*recordBytes)
	reader := bufio.NewReaderSize(section, 64<<10)
	var encoded [recordBytes]byte
	for slot := range int(c.records) {
		if _, err := io.ReadFull(reader, encoded[:]); err != nil {
			return fmt.Errorf("read record: %w", err)
		}
		r := decodeRecord(&encoded)
		isFree := r.id == 0
		if isFree {
			continue
		}
		if err := r.check(); err != nil {
			return err
		}
		if err := visit(slot, &r); err != nil {
			return err
		}
	}
	return nil
}

// decodeRecord decodes the bytes of a record. It is the inverse of record.appendTo.
func decodeRecord(encoded *[recordBytes]byte) (r record) {
	words := wordReader{encoded[:]}
	r.id = words.next()
	r.outcomesSent = words.next()
	r.received = words.next()
	r.settled = words.next()
	r.cyclePlusOne = words.next()
	r.count = words.next()
	for i := range r.ranges {
		r.ranges[i].firstCycle = words.next()
		r.ranges[i].lastCycle = words.next()
		r.ranges[i].lastSpan = words.next()
	}
	return r
}

// errFound ends eachRecord in findRecord.
var errFound = errors.New("record found")

// findRecord returns the record with the given ID and its slot, or nil if the file has no such record.
func (c *contents) findRecord(file io.ReaderAt, id uint64) (slot int, found *record, err error) {
	err = c.eachRecord(file, func(recordSlot int, r *record) error {
		if r.id != id {
			return nil
		}
		slot, found = recordSlot, r
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return slot, found, err
}

// stateOf returns whether the cycle (one export interval) with the given number was delivered, as far
// as the file says. It returns stateOpen if the cycle never began. If a later cycle has overwritten it in
// the file, it returns stateInDoubt.
func (c *contents) stateOf(number uint64) cycleState {
	stateWord := c.cycles[number%maxCycles].stateWord
	numberInSlot := numberIn(stateWord)
	switch {
	case numberInSlot > number: // a later cycle has overwritten it
		return stateInDoubt
	case numberInSlot < number:
		return stateOpen // the cycle had not begun, so no destination has any of its spans
	}
	return stateIn(stateWord)
}

// commonState returns the state of the cycles, or export intervals, from firstCycle to lastCycle. It
// returns stateInDoubt if they have different states, or if there are more than the file has room for.
func (c *contents) commonState(firstCycle, lastCycle uint64) cycleState {
	exceedsFile := lastCycle-firstCycle >= maxCycles
	if exceedsFile {
		return stateInDoubt
	}
	state := c.stateOf(lastCycle)
	for number := firstCycle; number < lastCycle; number++ {
		if c.stateOf(number) != state {
			return stateInDoubt
		}
	}
	return state
}
