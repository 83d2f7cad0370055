package ring

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// signalDepth is the maximum number of pending signals.
const signalDepth = 16

// Kind is the kind of a signal.
type Kind uint8

const (
	// Report is delivered after everything that was claimed before it was sent.
	Report Kind = iota + 1
	// Stop is delivered like Report, and is the last thing that Consume does.
	Stop
	// Clear is delivered immediately, before pending data and other signals.
	Clear
)

// Signal is a message to the consumer, separate from the data.
type Signal struct {
	Kind Kind
	Arg  uint64
}

// pendingSignal is a signal that was sent but not delivered.
type pendingSignal struct {
	Signal
	position uint64 // the signal is delivered when the consumer has reached this position
}

// mailbox contains the pending signals in the order in which they were sent. A lock is fast enough,
// because there are only a few signals per second.
type mailbox struct {
	first atomic.Uint64 // lowest position in box, compared with the consumer's position
	mu    sync.Mutex
	box   []pendingSignal
}

// never is the value of first when the box is empty. No position reaches it.
const never = math.MaxUint64

func (m *mailbox) init() {
	m.box = make([]pendingSignal, 0, signalDepth)
	m.first.Store(never)
}

// due reports whether take returns a signal. at is the position of the consumer.
func (m *mailbox) due(at uint64) bool { return at >= m.first.Load() }

// put adds a signal, and reports false if the box is full. The signal is due when the consumer reaches the present tail
// of the ring, and Clear is due at once. The tail is read under the lock, so that the positions in the box ascend.
func (m *mailbox) put(signal Signal, tail *atomic.Uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.box) == signalDepth {
		return false
	}
	entry := pendingSignal{Signal: signal}
	if signal.Kind != Clear {
		entry.position = tail.Load()
	}
	m.box = append(m.box, entry)
	m.first.Store(min(m.first.Load(), entry.position))
	return true
}

// take removes and returns the signal to deliver next: the first one with the lowest position. It reports
// false if the consumer has not reached this position. at is the position of the consumer.
func (m *mailbox) take(at uint64) (Signal, bool) {
	if !m.due(at) {
		return Signal{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	lowest := slices.IndexFunc(m.box, func(s pendingSignal) bool { return s.position == m.first.Load() })
	signal := m.box[lowest].Signal
	m.box = slices.Delete(m.box, lowest, lowest+1)
	first := uint64(never)
	for _, entry := range m.box {
		first = min(first, entry.position)
	}
	m.first.Store(first)
	return signal, true
}
