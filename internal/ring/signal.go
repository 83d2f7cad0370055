package ring

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// signalDepth is how many signals may wait for the consumer.
const signalDepth = 16

// Kind is what a signal asks of the consumer.
type Kind uint8

const (
	// Report is delivered after all that was claimed before it was sent.
	Report Kind = iota + 1
	// Stop is delivered like Report, and is the last thing that Consume does.
	Stop
	// Clear is delivered at once, past data and past the other kinds.
	Clear
)

// Signal goes to the consumer beside the data, never through it.
type Signal struct {
	Kind Kind
	Arg  uint64
}

// waiting is a signal with the position that the consumer must have reached.
type waiting struct {
	Signal
	bar uint64
}

// mailbox holds the signals that are not delivered yet, in the order of their
// sending. A lock guards it: signals are some a second.
type mailbox struct {
	first atomic.Uint64 // the lowest bar in the box, which the consumer compares with its cursor
	mu    sync.Mutex
	box   []waiting
}

// never is the bar of an empty box, which no cursor reaches.
const never = math.MaxUint64

func (m *mailbox) init() {
	m.box = make([]waiting, 0, signalDepth)
	m.first.Store(never)
}

// due tells whether a consumer at a position has a signal to take.
func (m *mailbox) due(at uint64) bool { return at >= m.first.Load() }

// put adds a signal unless the box is full. The tail is read under the lock, so
// that the bars of the box rise in its order.
func (m *mailbox) put(signal Signal, tail *atomic.Uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.box) == signalDepth {
		return false
	}
	entry := waiting{Signal: signal}
	if signal.Kind != Clear {
		entry.bar = tail.Load()
	}
	m.box = append(m.box, entry)
	m.first.Store(min(m.first.Load(), entry.bar))
	return true
}

// take removes the first signal with the lowest bar, if a consumer at that
// position has reached it.
func (m *mailbox) take(at uint64) (Signal, bool) {
	if !m.due(at) {
		return Signal{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	lowest := slices.IndexFunc(m.box, func(entry waiting) bool { return entry.bar == m.first.Load() })
	signal := m.box[lowest].Signal
	m.box = slices.Delete(m.box, lowest, lowest+1)
	first := uint64(never)
	for _, entry := range m.box {
		first = min(first, entry.bar)
	}
	m.first.Store(first)
	return signal, true
}
