package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/unix"
)

// File is the recovery file of this daemon. All methods can be called on a nil File, which records
// nothing.
type File struct {
	file   *os.File
	mapped []byte // nil if the file can't be mapped
	layout *layout

	mu      sync.Mutex // guards records and ids
	records []record
	ids     uint64 // last assigned ID

	stopping atomic.Bool // see Stopping

	before predecessors
}

// Create creates the recovery file for the socket at path, with one record per connection. A file
// that can't be mapped into memory is no failure: the File then keeps its words in ordinary memory,
// and unmapped is the reason.
func Create(path string, connections int) (f *File, unmapped, err error) {
	prefix := runningPrefix(path)
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(prefix)+"*")
	if err != nil {
		return nil, nil, fmt.Errorf("make running file: %w; check that the directory of --socket may be "+
			"written", err)
	}
	if err := tryLock(file); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("lock running file: %w", err), os.Remove(file.Name()),
			file.Close())
	}
	f = &File{file: file, before: predecessors{prefix: prefix}}
	f.mapped, unmapped = mapFile(file, Bytes(connections))
	memory := f.mapped
	if unmapped != nil {
		memory = make([]byte, Bytes(connections))
	}
	f.layout, f.records = wordsIn(memory, connections)
	f.layout.records.Store(uint64(connections))
	f.layout.magic.Store(magic) // last: it marks the file as valid
	return f, unmapped, nil
}

// runningPrefix returns the common prefix of the recovery files of a socket. It is the same for all
// spellings of the path.
func runningPrefix(path string) string { return filepath.Clean(path) + ".running-" }

// name returns the part of the file name that identifies this file among those of its socket.
func (f *File) name() string { return strings.TrimPrefix(f.file.Name(), f.before.prefix) }

// FindCrashed reads the recovery files of daemons that were killed, and returns the names of those
// that no daemon has reported before. A file that can't be read, such as another user's, is
// skipped, and is part of the error: it is unknown whether its daemon shut down cleanly.
func (f *File) FindCrashed() (died []string, err error) { return f.before.find() }

// MarkReported records that the crashes found by FindCrashed have been reported, so that later
// daemons do not report them again.
func (f *File) MarkReported() error { return f.before.markReported() }

// Earlier returns the outcomes of the spans of a connection to an earlier daemon, given the
// connection's token, in the encoding of wire.Outcomes. It returns nil if they are unknown. It can
// be called repeatedly.
func (f *File) Earlier(token string) []uint64 {
	name, text, _ := strings.Cut(token, "-")
	id, err := strconv.ParseUint(text, 16, 64)
	switch {
	case f == nil || err != nil || id == 0:
		return nil
	case f.mapped != nil && name == f.name():
		// The connection was to this daemon, which has counted all its spans.
		return wire.AppendOutcome(nil, math.MaxInt64, wire.Settled)
	}
	return f.before.earlier(name, id)
}

// Losses returns the spans lost by crashes that no daemon had reported before this one. The numbers
// never decrease.
func (f *File) Losses() Losses {
	if f == nil {
		return new(predecessors).losses()
	}
	return f.before.losses()
}

// SetStopping records that the daemon is shutting down and will close connections itself. Their
// records stay, because the clients keep their unsettled spans and ask the next daemon about them,
// should this one be killed before it has delivered everything.
func (f *File) SetStopping() { f.stopping.Store(true) }

// Remove removes the file after everything was delivered. It is not an error if the file is gone
// already. The memory stays mapped, because metrics can be read afterwards.
func (f *File) Remove() error {
	removed := os.Remove(f.file.Name())
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	return errors.Join(removed, f.file.Close())
}

// Receiver is the receiver of a span whose client no longer has it.
type Receiver int

// The receivers. Spans of a native client belong to Socket after it has disconnected; before, the client
// keeps them.
const (
	Socket Receiver = iota
	APM
	OTLP
	Zipkin

	receivers = int(Zipkin) + 1
)

var receiverNames = [receivers]string{"socket", "apm", "otlp", "zipkin"}

// String returns the name of the receiver in metrics.
func (d Receiver) String() string { return receiverNames[d] }

const (
	magic = 0x73706e72756e3031 // changes with the layout

	// mostCycles exceeds the number of unsettled cycles: four per interval, for the retry age.
	mostCycles = 1024
)

// word is one word of the file. Tests can kill the process after each store to a word.
type word struct{ value atomic.Uint64 }

func (w *word) Load() uint64 { return w.value.Load() }

func (w *word) Store(to uint64) {
	w.value.Store(to)
	stored()
}

func (w *word) Add(more uint64) {
	w.value.Add(more)
	stored()
}

func (w *word) Swap(to uint64) (old uint64) {
	old = w.value.Swap(to)
	stored()
	return old
}

// layout is the first part of the file. The records of connections follow.
type layout struct {
	magic, records word
	older          [receivers]word // by receiver, spans of unsettled cycles whose slot was reused
	cycles         [mostCycles]cycle
}

// cycle is a slot of the file. Cycles use the slots in turn, so a slot belongs to the last cycle that
// began in it.
type cycle struct {
	state word            // number and state of the cycle, see wordOf
	spans [receivers]word // by receiver, spans of the cycle that only this daemon has
}

// record says which spans of one connection are in which cycles. SettlementTracker writes it.
type record struct {
	id       word // 0 if the record is free
	received word // number of received spans
	settled  word // number of settled spans
	current  word // last cycle that the connection was in, plus one; 0 before the first
	head     word // number of marks ever added; marks are a ring buffer
	tail     word // number of marks ever removed
	marks    [marks]mark
}

// marks is the number of marks per record, enough for the cycles of a minute. If more cycles are
// unsettled, because the agent is unavailable, the last mark is extended, and settled with its last
// cycle.
const marks = 8

// mark is a range of a connection's spans, and the cycles that contain them. Spans are numbered from
// 1 in the order of reception. The range begins after the previous mark, ends with span upTo, and is
// in the cycles from first to last.
type mark struct{ first, last, upTo word }

const (
	layoutBytes = int(unsafe.Sizeof(layout{}))
	recordBytes = int(unsafe.Sizeof(record{}))
)

// Bytes returns the length of a file for the given number of connections.
func Bytes(connections int) int { return layoutBytes + connections*recordBytes }

// wordsIn returns the layout and the records that the memory of a file contains.
func wordsIn(memory []byte, connections int) (*layout, []record) {
	first := unsafe.Pointer(unsafe.SliceData(memory))
	return (*layout)(first), unsafe.Slice((*record)(unsafe.Add(first, layoutBytes)), connections)
}

// mapFile allocates and maps a file. It allocates all disk space now, because a store to a page
// without disk space would crash the process.
func mapFile(file *os.File, bytes int) ([]byte, error) {
	fd := int(file.Fd())
	if err := unix.Fallocate(fd, 0, 0, int64(bytes)); err != nil {
		if _, err := file.Write(make([]byte, bytes)); err != nil {
			return nil, fmt.Errorf("fill running file: %w", err)
		}
	}
	memory, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map running file: %w", err)
	}
	return memory, nil
}

// tryLock locks a file until its descriptor is closed.
func tryLock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// cycleState is the state of a cycle at the destinations.
type cycleState uint64

const (
	open    cycleState = iota // no destination has any of it
	inDoubt                   // a destination may have some of it
	settled                   // every span has its outcome
)

// stateBits is the number of bits for the state in a state word. The other bits are the number of
// the cycle, so both are stored in one atomic operation.
const stateBits = 2

// wordOf returns the state word for the number and state of a cycle.
func wordOf(number uint64, s cycleState) uint64 { return number<<stateBits | uint64(s) }

// numberIn returns the number of the cycle in a state word.
func numberIn(stateWord uint64) uint64 { return stateWord >> stateBits }

// stateIn returns the state of the cycle in a state word.
func stateIn(stateWord uint64) cycleState { return cycleState(stateWord & (1<<stateBits - 1)) }

// at returns the slot of a cycle.
func (l *layout) at(number uint64) *cycle { return &l.cycles[number%mostCycles] }

// stateOf returns the state of a cycle. If a later cycle has reused the slot, the state is unknown,
// so the cycle counts as in doubt. If an earlier cycle is still in the slot, this one has not begun,
// so no destination has any of it.
func (l *layout) stateOf(number uint64) cycleState {
	stateWord := l.at(number).state.Load()
	switch inSlot := numberIn(stateWord); {
	case inSlot > number:
		return inDoubt
	case inSlot < number:
		return open
	}
	return stateIn(stateWord)
}

// combined returns the state of the cycles from first to last if all have the same state, and
// inDoubt otherwise.
func (l *layout) combined(first, last uint64) cycleState {
	if last-first >= mostCycles {
		return inDoubt
	}
	state := l.stateOf(last)
	for number := first; number < last; number++ {
		if l.stateOf(number) != state {
			return inDoubt
		}
	}
	return state
}

// spanRange is the content of a mark: the spans after the previous range, up to number upTo, are in
// the cycles from first to last.
type spanRange struct{ first, last, upTo uint64 }

// ranges iterates over the unsettled spans of a connection, oldest first: the marks, and the spans
// received in the current cycle, which has no mark yet. If head and tail are inconsistent, as in a
// damaged file, ranges yields nothing.
func (r *record) ranges(yield func(spanRange) bool) {
	head, tail := r.head.Load(), r.tail.Load()
	if isDamaged := head < tail || head-tail > marks; isDamaged {
		return
	}
	for ; tail < head; tail++ {
		m := &r.marks[tail%marks]
		if !yield(spanRange{m.first.Load(), m.last.Load(), m.upTo.Load()}) {
			return
		}
	}
	if current := r.current.Load(); current > 0 {
		yield(spanRange{current - 1, current - 1, r.received.Load()})
	}
}

// Begin assigns a slot of the file to a new cycle, before any publisher enters the cycle. It first
// moves the counts of an unsettled older cycle from the slot to older, and stores the number of the
// new cycle last. So after a crash in between, no span is counted in the new cycle by mistake.
func (f *File) Begin(number uint64) {
	if f == nil {
		return
	}
	c := f.layout.at(number)
	isOldUnsettled := stateIn(c.state.Load()) != settled // the cycle that used the slot before
	for receiver := range c.spans {
		spans := c.spans[receiver].Swap(0)
		if isOldUnsettled && spans > 0 {
			f.layout.older[receiver].Add(spans)
		}
	}
	c.state.Store(wordOf(number, open))
}

// SetInDoubt records whether a destination may have some spans of the cycle with the given number.
// Calls for one cycle must not be concurrent.
func (f *File) SetInDoubt(number uint64, isInDoubt bool) {
	if isInDoubt {
		f.set(number, inDoubt)
	} else {
		f.set(number, open)
	}
}

// Settle records that a cycle is settled. Clients must not be notified before.
func (f *File) Settle(number uint64) { f.set(number, settled) }

// set sets the state of a cycle, unless a later cycle has reused its slot.
func (f *File) set(number uint64, to cycleState) {
	if f == nil {
		return
	}
	if c := f.layout.at(number); numberIn(c.state.Load()) == number {
		c.state.Store(wordOf(number, to))
	}
}

// Count adds to the number of spans of a cycle that only this daemon has, because their client no
// longer keeps them: for example, the spans of a request that is about to be acknowledged. It does
// nothing if a later cycle has reused the slot.
func (f *File) Count(number uint64, receiver Receiver, spans uint64) {
	if f == nil {
		return
	}
	if c := f.layout.at(number); numberIn(c.state.Load()) == number {
		c.spans[receiver].Add(spans)
	}
}
