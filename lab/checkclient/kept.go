package checkclient

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// isDoomed reports whether the simulated crash ends this connection.
func (s *session) isDoomed() bool { return s.death != nil && s.id == 1 }

// token returns the token that the welcome of a connection carries.
func token(id int) string { return fmt.Sprint("check-", id) }

// ask checks the question of a hello about earlier connections, and sets the reply in the
// welcome.
func (s *session) ask(e *event, hello *wire.Hello, welcome *wire.Welcome) {
	welcome.Settled, welcome.Token = hello.Settled, token(s.id)
	if !hello.Settled {
		s.note(&e.entry, noteKept, "hello does not say settled: the client can't know what to keep")
	}
	d := s.death
	d.mu.Lock()
	defer d.mu.Unlock()
	want := ""
	if d.isOver && !d.isAsked {
		want, d.isAsked = token(1), true
	}
	if hello.Earlier != want {
		s.note(&e.entry, noteKept, "hello says earlier %q, and the token of the connection that a daemon has "+
			"died with is %q", head(hello.Earlier), want)
	}
	if want == "" {
		return
	}
	settled, doubtful := d.batches[0], d.batches[1]
	end := uint64(len(settled) + len(doubtful))
	welcome.Earlier = wire.AppendOutcome(nil, uint64(len(settled)), wire.Settled)
	welcome.Earlier = wire.AppendOutcome(welcome.Earlier, end, wire.Ambiguous)
	s.after = aftermath{
		slices.Concat(d.batches[2:]...), slices.Concat(settled, doubtful),
		uint64(len(doubtful)),
	}
}

// keep records a span. Spans of the first connection are those that the client must keep until
// they are settled. On a connection after the crash, keep compares the span with those.
func (s *session) keep(dst *entry, snapshot *wire.Snapshot) {
	key := s.keys.numbers[snapshot.Number]
	if !snapshot.Numbered {
		key = maphash.Bytes(seed, snapshot.Key)
	}
	text := binary.BigEndian.AppendUint64(nil, key)
	text = binary.BigEndian.AppendUint64(text, snapshot.Duration)
	text = binary.BigEndian.AppendUint64(text, uint64(snapshot.End))
	text = binary.BigEndian.AppendUint64(text, math.Float64bits(snapshot.Weight))
	mark := maphash.Bytes(seed, append(text, byte(snapshot.Flags)))
	switch {
	case s.isDoomed():
		last := len(s.death.batches) - 1
		s.death.batches[last] = append(s.death.batches[last], mark)
	case len(s.after.again) > 0 && mark == s.after.again[0]:
		s.after.again = s.after.again[1:]
	case slices.Contains(s.after.twice, mark):
		s.note(dst, noteKept, "a span comes again that is settled or doubtful: it may count twice")
	case len(s.after.again) > 0:
		s.note(dst, noteKept, "a span comes before, or instead of, one that is to be handed over again")
	}
}

// noteUnfulfilled notes what a connection after the crash failed to do.
func (s *session) noteUnfulfilled(dst *entry) {
	if n := len(s.after.again); n > 0 {
		s.note(dst, noteKept, "%d spans that no destination has were not handed over again as they were", n)
	}
	if s.after.ambiguous > 0 {
		s.note(dst, noteKept, "%d doubtful spans were not reported as lost, with the reason ambiguous",
			s.after.ambiguous)
	}
}
