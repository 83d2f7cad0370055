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
	mu      sync.Mutex
	pending []pendingSignal

	firstDue atomic.Uint64 // lowest position in pending, or never; isSignalDue reads it without the lock
}

// immediately is the position of a signal that is delivered at any position of the consumer.
const immediately = 0

// never is the value of firstDue when no signal is pending. No position reaches it.
const never = math.MaxUint64

func (m *mailbox) init() {
	m.pending = make([]pendingSignal, 0, signalDepth)
	m.firstDue.Store(never)
}

// isSignalDue reports whether a signal is to be delivered to a consumer at the given position.
func (m *mailbox) isSignalDue(position uint64) bool { return position >= m.firstDue.Load() }

// addSignal adds a signal for the consumer. It returns false if there are too many. The consumer gets a Clear
// signal immediately, and other signals after all slots that are claimed so far.
func (s *sequence) addSignal(signal Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == signalDepth {
		return false
	}
	position := uint64(immediately)
	if signal.Kind != Clear {
		position = s.tail.Load() // end of the claimed slots; s.mu ensures that no later signal has a lower position
	}
	s.pending = append(s.pending, pendingSignal{Signal: signal, position: position})
	s.firstDue.Store(s.lowestPosition()) // lets the consumer see, without the lock, when a signal is due
	return true
}

// takeSignal removes and returns the next signal for a consumer at the given position. It returns false if all signals
// are to be delivered at later positions. Signals with the same position are returned in the order in which they were
// sent.
func (m *mailbox) takeSignal(position uint64) (Signal, bool) {
	if !m.isSignalDue(position) {
		return Signal{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := 0 // index of the signal with the lowest position
	for i, signal := range m.pending {
		if signal.position < m.pending[first].position {
			first = i
		}
	}
	signal := m.pending[first].Signal
	m.pending = slices.Delete(m.pending, first, first+1)
	m.firstDue.Store(m.lowestPosition())
	return signal, true
}

// lowestPosition returns the lowest position of the pending signals, or never if there are none.
func (m *mailbox) lowestPosition() uint64 {
	lowest := uint64(never)
	for _, signal := range m.pending {
		lowest = min(lowest, signal.position)
	}
	return lowest
}
