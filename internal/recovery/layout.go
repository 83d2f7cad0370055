package recovery

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The file consists of words of eight bytes: the header, the cycles and the records. No cycle and no record
// crosses the border of a page, because a kill can interrupt a write only there.
const (
	magic = 0x73706e72756e3032 // changes with the layout

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

// DirectoryBytes returns the maximum length of all recovery files of a socket: those of kept predecessors, of the
// daemon that was killed last, of the running daemon, and of its successor.
func DirectoryBytes(connections int) int { return (maxKeptFiles + 3) * Bytes(connections) }

// header is the first part of the file. The daemons that report the crash change named and found.
type header struct {
	magic, records uint64
	began          uint64            // when the daemon started, in nanoseconds since the epoch
	reported       uint64            // which losses have been reported: a stage
	reportedAt     uint64            // when the first were
	older          [receivers]uint64 // by receiver, spans of unsettled cycles whose slot was reused
}

// The places of words that are written alone.
const (
	reportedOffset = 3 * wordBytes // followed by reportedAt
	olderOffset    = 5 * wordBytes
)

func (h *header) words() []uint64 {
	return append([]uint64{h.magic, h.records, h.began, h.reported, h.reportedAt}, h.older[:]...)
}

// cycle is a slot of the file. Cycles use the slots in turn, so a slot belongs to the last cycle that
// began in it.
type cycle struct {
	state uint64            // number and state of the cycle, see packState
	spans [receivers]uint64 // by receiver, spans of the cycle that only this daemon has
}

// cycleOffset returns the position of a cycle slot in the file, in bytes.
func cycleOffset(slot uint64) int64 { return headerBytes + int64(slot)*cycleBytes }

// record says which spans of one connection are in which cycles.
type record struct {
	id            uint64 // 0 if the record is free
	isReconnected uint64 // 1 if a later daemon has sent the outcomes to the client
	received      uint64 // number of received spans
	settled       uint64 // number of settled spans
	current       uint64 // last cycle that the connection was in, plus one; 0 before the first
	count         uint64 // number of used ranges
	ranges        [rangesPerRecord]spanRange
}

// The places of words of a record that are written alone.
const (
	isReconnectedOffset = 1 * wordBytes
	receivedOffset      = 2 * wordBytes
)

// spanRange is a range of a connection's spans, and the cycles that contain them. Spans are numbered from
// 1 in the order of reception. The range begins after the previous range, ends with span upTo, and is
// in the cycles from first to last.
type spanRange struct{ first, last, upTo uint64 }

// recordOffset returns the position of a record in the file, in bytes.
func recordOffset(slot int) int64 { return recordsOffset + int64(slot)*recordBytes }

// appendTo appends the bytes of the record.
func (r *record) appendTo(to []byte) []byte {
	to = appendWords(to, r.id, r.isReconnected, r.received, r.settled, r.current, r.count)
	for _, m := range r.ranges {
		to = appendWords(to, m.first, m.last, m.upTo)
	}
	return to
}

func appendWords(to []byte, words ...uint64) []byte {
	for _, word := range words {
		to = binary.NativeEndian.AppendUint64(to, word)
	}
	return to
}

// unsettledRanges iterates over the span ranges of a connection, oldest first. The last range contains the spans
// received in the current cycle.
func (r *record) unsettledRanges(yield func(spanRange) bool) {
	for _, m := range r.ranges[:r.count] {
		if !yield(m) {
			return
		}
	}
	if r.current > 0 {
		yield(spanRange{r.current - 1, r.current - 1, r.received})
	}
}

// check returns an error if no daemon can have written the record.
func (r *record) check() error {
	isValid := r.isReconnected <= 1 && r.settled <= r.received && r.count <= rangesPerRecord && r.received-r.settled <= maxSpans
	for i := uint64(0); isValid && i < r.count; i++ {
		m := r.ranges[i]
		isValid = m.first <= m.last && m.last < r.current && m.upTo <= r.received &&
			(i == 0 || m.upTo >= r.ranges[i-1].upTo)
	}
	if !isValid {
		return fmt.Errorf("read record: %+v is invalid", *r)
	}
	return nil
}

// cycleState is the state of a cycle at the destinations.
type cycleState uint64

const (
	open    cycleState = iota // no destination has any of it
	inDoubt                   // a destination may have some of it
	settled                   // every span has its outcome
)

// stateBits is the number of bits for the state in a state word. The other bits are the number of
// the cycle, so both are written in one operation.
const stateBits = 2

// packState returns the state word for the number and state of a cycle.
func packState(number uint64, s cycleState) uint64 { return number<<stateBits | uint64(s) }

// numberIn returns the number of the cycle in a state word.
func numberIn(stateWord uint64) uint64 { return stateWord >> stateBits }

// stateIn returns the state of the cycle in a state word.
func stateIn(stateWord uint64) cycleState { return cycleState(stateWord & (1<<stateBits - 1)) }

// contents is the part of a file before the records.
type contents struct {
	header
	cycles [maxCycles]cycle
}

// read reads and checks the contents of a file of the given size. An error means that no daemon of this
// version can have written the file, or that something has damaged it since.
func (c *contents) read(file io.ReaderAt, size int64) error {
	encoded := make([]byte, recordsOffset)
	if _, err := file.ReadAt(encoded, 0); err != nil {
		return fmt.Errorf("read recovery file: %w", err)
	}
	word := func(at int64) uint64 { return binary.NativeEndian.Uint64(encoded[at:]) }
	c.header = header{
		magic: word(0), records: word(wordBytes), began: word(2 * wordBytes), reported: word(reportedOffset),
		reportedAt: word(reportedOffset + wordBytes),
	}
	for receiver := range c.older {
		c.older[receiver] = word(olderOffset + int64(receiver)*wordBytes)
	}
	for slot := range c.cycles {
		at := cycleOffset(uint64(slot))
		c.cycles[slot].state = word(at)
		for receiver := range c.cycles[slot].spans {
			c.cycles[slot].spans[receiver] = word(at + int64(1+receiver)*wordBytes)
		}
	}
	return c.check(size)
}

func (c *contents) check(size int64) error {
	if c.magic != magic || c.records > maxRecords || size != int64(Bytes(int(c.records))) ||
		stage(c.reported) > allReported {
		return errors.New("check recovery file: its layout or length is not that of this version")
	}
	isPossible := func(spans [receivers]uint64) bool {
		for _, n := range spans {
			if n > maxSpans {
				return false
			}
		}
		return true
	}
	isValid := isPossible(c.older)
	for slot := range c.cycles {
		one := &c.cycles[slot]
		isUnused := *one == cycle{}
		isValid = isValid && (isUnused || numberIn(one.state)%maxCycles == uint64(slot) &&
			stateIn(one.state) <= settled && isPossible(one.spans))
	}
	if !isValid {
		return errors.New("check recovery file: a cycle is invalid")
	}
	return nil
}

// eachRecord calls visit for the records in use, until visit returns an error.
func (c *contents) eachRecord(file io.ReaderAt, visit func(slot int, r *record) error) error {
	in := bufio.NewReaderSize(io.NewSectionReader(file, recordsOffset, int64(c.records)*recordBytes), 64<<10)
	var encoded [recordBytes]byte
	for slot := range int(c.records) {
		if _, err := io.ReadFull(in, encoded[:]); err != nil {
			return fmt.Errorf("read record: %w", err)
		}
		word := func(n int) uint64 { return binary.NativeEndian.Uint64(encoded[n*wordBytes:]) }
		if word(0) == 0 {
			continue
		}
		r := record{
			id: word(0), isReconnected: word(1), received: word(2), settled: word(3), current: word(4), count: word(5),
		}
		for i := range r.ranges {
			r.ranges[i] = spanRange{word(6 + 3*i), word(7 + 3*i), word(8 + 3*i)}
		}
		if err := errors.Join(r.check(), visit(slot, &r)); err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns the state of a cycle. If a later cycle has reused the slot, the state is unknown,
// so the cycle counts as in doubt. If an earlier cycle is still in the slot, this one has not begun,
// so no destination has any of it.
func (c *contents) stateOf(number uint64) cycleState {
	stateWord := c.cycles[number%maxCycles].state
	switch inSlot := numberIn(stateWord); {
	case inSlot > number:
		return inDoubt
	case inSlot < number:
		return open
	}
	return stateIn(stateWord)
}

// commonState returns the state of the cycles from first to last if all have the same state, and
// inDoubt otherwise.
func (c *contents) commonState(first, last uint64) cycleState {
	if last-first >= maxCycles {
		return inDoubt
	}
	state := c.stateOf(last)
	for number := first; number < last; number++ {
		if c.stateOf(number) != state {
			return inDoubt
		}
	}
	return state
}
