package running

import (
	"sync/atomic"
	"unsafe"
)

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
