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

// File is the running file of this daemon. A nil one is of nobody: what is noted in it is lost.
type File struct {
	file   *os.File
	mapped []byte // nil where it can't be
	layout *layout

	mu      sync.Mutex // guards the next two
	records []record
	ids     uint64 // that were given

	stopping atomic.Bool // see Stopping

	before predecessors
}

// Make makes the file of this daemon, of a socket's path, with room for so many connections. Where
// it can't be mapped the file is there all the same, and unmapped says why.
func Make(path string, connections int) (f *File, unmapped, err error) {
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
	f.layout, f.records = over(memory, connections)
	f.layout.records.Store(uint64(connections))
	f.layout.magic.Store(magic) // last: until then it says nothing
	return f, unmapped, nil
}

// runningPrefix is how the names of all running files of a socket begin, however its path is written.
func runningPrefix(path string) string { return filepath.Clean(path) + ".running-" }

// name tells this file from all others of its socket.
func (f *File) name() string { return strings.TrimPrefix(f.file.Name(), f.before.prefix) }

// FindDead reads what daemons have left that were killed at this file's socket, and returns the names
// of those that nobody has said before. One that can't be looked at, such as another user's, is left,
// and is no reason not to run: the error says of which nobody knows how its daemon ended.
func (f *File) FindDead() (died []string, err error) { return f.before.find() }

// Said notes that it was said who died, and what with it: no later daemon says it again. A daemon that
// is killed before leaves that to the next.
func (f *File) Said() error { return f.before.said() }

// Earlier says what became of the spans of the connection that has a token, as wire.Outcomes reads
// it; nil where nobody knows. Whoever asks again is told the same.
func (f *File) Earlier(token string) []uint64 {
	name, text, _ := strings.Cut(token, "-")
	id, err := strconv.ParseUint(text, 16, 64)
	switch {
	case f == nil || err != nil || id == 0:
		return nil
	case f.mapped != nil && name == f.name():
		// It lives, and has them all in its books.
		return wire.AppendOutcome(nil, math.MaxInt64, wire.Settled)
	}
	return f.before.earlier(name, id)
}

// Losses is what daemons have taken with them that nobody had said before this one. It never falls.
func (f *File) Losses() Losses {
	if f == nil {
		return new(predecessors).losses()
	}
	return f.before.losses()
}

// Stopping says that connections are now ended by this daemon: their clients keep what they handed over, and
// ask the next one, should this one be killed before its books are delivered. So what stands of them
// stays.
func (f *File) Stopping() { f.stopping.Store(true) }

// Done says that the books were delivered. Where the file is gone, with its directory
// perhaps, no daemon can take this one for one that died. The memory stays mapped: who is asked for
// figures behind the end reads them there.
func (f *File) Done() error {
	removed := os.Remove(f.file.Name())
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	return errors.Join(removed, f.file.Close())
}

// Door is where a span came in whose sender does not have it any more.
type Door int

// The doors. A connection's spans are the Socket's here when it has left; before that it has them
// itself.
const (
	Socket Door = iota
	APM
	OTLP
	Zipkin

	doors = int(Zipkin) + 1
)

var doorNames = [doors]string{"socket", "apm", "otlp", "zipkin"}

// String is the door's name in metrics.
func (d Door) String() string { return doorNames[d] }

const (
	magic = 0x73706e72756e3031 // of this layout: another one has another number

	// mostCycles is more than have no outcome at a time: four an interval, for the retry age.
	mostCycles = 1024
)

// word is one word of the file. A test can have the process killed behind each of its stores, in order.
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

// layout is the file's first part; the records of connections follow.
type layout struct {
	magic, records word
	older          [doors]word // spans of cycles whose place another one has now
	cycles         [mostCycles]cycle
}

// cycle is one of those that are not settled, or the last that had its place.
type cycle struct {
	state word // its number and its state, see stateOf
	spans [doors]word
}

// record is a connection, see Settling.
type record struct {
	id       word // 0: of nobody
	received word // spans
	settled  word // of them
	current  word // number plus one of the cycle that it was in last, 0 before the first
	head     word // of the marks, how many there ever were
	tail     word // and how many are gone
	marks    [marks]mark
}

// marks are enough for the cycles of a minute. Where more have no outcome, because the
// agent is away, the newest are taken for one, and settled with the last of them.
const marks = 8

// mark says which cycles have the spans behind those of the mark before, up to upTo.
type mark struct{ first, last, upTo word }

const (
	layoutBytes = int(unsafe.Sizeof(layout{}))
	recordBytes = int(unsafe.Sizeof(record{}))
)

// Bytes is how long the file of so many connections is.
func Bytes(connections int) int { return layoutBytes + connections*recordBytes }

// over reads memory as a file's words.
func over(memory []byte, connections int) (*layout, []record) {
	first := unsafe.Pointer(unsafe.SliceData(memory))
	return (*layout)(first), unsafe.Slice((*record)(unsafe.Add(first, layoutBytes)), connections)
}

// mapFile maps a file of so many bytes. All of them are taken now: a store into a page that a full
// disk has no room for would end the process.
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

// tryLock locks a file until its descriptor is closed and its mapping is gone.
func tryLock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// state is how far the destinations are with a cycle.
type state uint64

const (
	open     state = iota // none has anything of it
	doubtful              // one may have
	settled
)

// wordOf is a cycle's number and its state, in the one word that says both.
func wordOf(number uint64, s state) uint64 { return number<<2 | uint64(s) }

func (l *layout) at(number uint64) *cycle { return &l.cycles[number%mostCycles] }

// stateOf is how far a cycle is. One whose place another one has was settled long ago, or nobody
// knows.
func (l *layout) stateOf(number uint64) state {
	w := l.at(number).state.Load()
	switch at := w >> 2; {
	case at > number:
		return doubtful
	case at < number:
		return open // nobody has begun it
	}
	return state(w & 3)
}

// combined is how far several cycles are together: all alike, or doubtful.
func (l *layout) combined(first, last uint64) state {
	all := l.stateOf(last)
	if last-first >= mostCycles {
		return doubtful
	}
	for ; first < last; first++ {
		if l.stateOf(first) != all {
			return doubtful
		}
	}
	return all
}

// span is a range of a connection's spans, up to one, and the cycles that they lie in.
type span struct{ first, last, upTo uint64 }

// ranges go through the spans that are not settled. What the record says beyond its marks, as in a
// file that is damaged, is left out.
func (r *record) ranges(yield func(span) bool) {
	head, tail := r.head.Load(), r.tail.Load()
	if head < tail || head-tail > marks {
		return
	}
	for ; tail < head; tail++ {
		m := &r.marks[tail%marks]
		if !yield(span{m.first.Load(), m.last.Load(), m.upTo.Load()}) {
			return
		}
	}
	if current := r.current.Load(); current > 0 {
		yield(span{current - 1, current - 1, r.received.Load()})
	}
}

// Begin begins a cycle before any publisher enters it. Its number is stored after its count is cleared, so a kill in
// between leaves no span counted in the wrong cycle.
func (f *File) Begin(number uint64) {
	if f == nil {
		return
	}
	c := f.layout.at(number)
	isLeft := state(c.state.Load()&3) != settled
	for door := range c.spans {
		if spans := c.spans[door].Swap(0); isLeft && spans > 0 {
			f.layout.older[door].Add(spans)
		}
	}
	c.state.Store(wordOf(number, open))
}

// Doubt notes that destinations may have something of a cycle, or that none has after all. The
// caller sees to it that calls for one cycle come one at a time.
func (f *File) Doubt(number uint64, is bool) {
	if is {
		f.set(number, doubtful)
	} else {
		f.set(number, open)
	}
}

// Settle notes that a cycle has its outcome. Nobody may be told before.
func (f *File) Settle(number uint64) { f.set(number, settled) }

func (f *File) set(number uint64, to state) {
	if f == nil {
		return
	}
	if c := f.layout.at(number); c.state.Load()>>2 == number {
		c.state.Store(wordOf(number, to))
	}
}

// Count notes spans of a cycle that nobody has any more but this daemon, such as those of a request
// that is about to be answered. Where the cycle has its outcome by then, that changes nothing.
func (f *File) Count(number uint64, door Door, spans uint64) {
	if f == nil {
		return
	}
	if c := f.layout.at(number); c.state.Load()>>2 == number {
		c.spans[door].Add(spans)
	}
}
