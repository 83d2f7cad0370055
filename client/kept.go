package client

import (
	"log/slog"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// kept is what a connection has handed over and the daemon has not settled, as far as there is room: if
// the daemon dies, the next one may have to be handed it again. It is the sender's alone.
//
// A buffer is kept as it was written, and so a full one costs nothing. What a smaller one holds is
// copied behind what was kept last, with its own definitions, so that many that were sent for their
// age take no more buffers than they fill.
type kept struct {
	pool    *pool
	most    int       // buffers
	buffers []*buffer // the oldest first; it never grows
}

// fates are how many spans of an ended connection came to what.
type fates struct{ again, ambiguous, died uint64 }

// add keeps a buffer that was handed over. Where there is no room the oldest is let go.
func (k *kept) add(b *buffer, upTo uint64) {
	b.upTo = upTo
	n := len(k.buffers)
	if k.most == 0 || n > 0 && k.buffers[n-1].join(b) {
		k.pool.give(b)
		return
	}
	if n == k.most {
		k.letGo(1)
	}
	k.hold(b, upTo)
}

// hold keeps a buffer even where there is no room, as one is of which only a part was handed over.
func (k *kept) hold(b *buffer, upTo uint64) {
	b.upTo = upTo
	k.buffers = append(k.buffers, b)
}

// release lets go of what is settled.
func (k *kept) release(settled uint64) {
	n := 0
	for n < len(k.buffers) && k.buffers[n].upTo <= settled {
		n++
	}
	k.letGo(n)
}

func (k *kept) letGo(n int) {
	for _, b := range k.buffers[:n] {
		k.pool.give(b)
	}
	k.buffers = slices.Delete(k.buffers, 0, n)
}

// sift leaves what is to be handed over again, and of a buffer that was cut what was not handed over.
// It goes by the outcomes of the spans that are handed and not settled, whose numbers are those of the
// connection.
func (k *kept) sift(handed, settled uint64, outcomes []uint64) fates {
	first := handed // the last span that is not kept any more
	if len(k.buffers) > 0 {
		first = min(handed, k.buffers[0].upTo-uint64(k.buffers[0].spans))
	}
	var gone, found [wire.Resend + 1]uint64
	for at := settled; at < first; {
		what, upTo := outcome(outcomes, at+1)
		upTo = min(upTo, first)
		gone[what] += upTo - at
		at = upTo
	}
	again := k.buffers[:0]
	for _, b := range k.buffers {
		at := b.upTo - uint64(b.spans)
		b.retain(func(spans int) bool {
			at += uint64(spans)
			if at > handed {
				return true
			}
			what := wire.Settled
			if at > settled {
				what, _ = outcome(outcomes, at)
			}
			found[what] += uint64(spans)
			return what == wire.Resend
		})
		if b.spans == 0 {
			k.pool.give(b)
		} else {
			again = append(again, b)
		}
	}
	k.buffers = again
	return fates{found[wire.Resend], gone[wire.Doubtful] + found[wire.Doubtful], gone[wire.Resend]}
}

// outcome is that of the span with that number, and of those behind it up to another.
func outcome(outcomes []uint64, number uint64) (what wire.Outcome, upTo uint64) {
	for upTo, what := range wire.Outcomes(outcomes) {
		if number <= upTo {
			return what, upTo
		}
	}
	return wire.Resend, math.MaxUint64
}

// isAsked reports whether the next daemon can say what became of the spans of a connection, should this
// one die.
func (l *connection) isAsked() bool {
	return l.says.Settled && l.says.Token != "" && len(l.says.Token) <= wire.MaxToken
}

// leave sees to what an ended connection was handed. Where a daemon left in order, its books have it,
// unless it is killed before it has delivered them: the next one knows. Where it is still there its books
// have it too, but who closes has not seen it there.
func (s *sender) leave(l *connection) {
	isOurs, open := s.saidBye == l, l.unsettled()
	hasDied := l.died() && !isOurs
	if (hasDied || l.saidBye() && !isOurs) && open > 0 && l.isAsked() {
		s.earlier = l
		return
	}
	if !isOurs && s.c.aborted.Err() == nil {
		l.settle(l.handed.Load())
	}
	s.again(l.handed.Load(), l.handed.Load(), nil)
	if hasDied && open > 0 {
		s.lose(fates{died: open})
	}
}

// goBy goes by what a daemon says of an earlier connection, if it was asked about one. Where it knows
// nothing, spans that were handed over again might count twice; behind a bye it knows nothing because
// they were delivered.
func (s *sender) goBy(l *connection) {
	if earlier := s.earlier; earlier != nil {
		handed, open := earlier.handed.Load(), earlier.unsettled()
		earlier.settle(handed) // so that the books have no span twice
		if len(l.says.Earlier) > 0 {
			s.lose(s.again(handed, handed-open, l.says.Earlier))
		} else {
			s.again(handed, handed, nil)
			if !earlier.saidBye() {
				s.lose(fates{died: open})
			}
		}
		s.earlier = nil
	}
	s.kept.most = 0
	if l.isAsked() {
		s.kept.most = max(s.c.config.MaxKept, 0) / bufferBytes
	}
	s.c.last.Store(l)
}

// again has what is to be handed over again wait in front of everything else. The books have it as
// buffered once more.
func (s *sender) again(handed, settled uint64, outcomes []uint64) fates {
	came := s.kept.sift(handed, settled, outcomes)
	s.c.sent.Add(-came.again)
	s.pending = slices.Insert(s.pending, 0, s.kept.buffers...)
	s.kept.buffers = s.kept.buffers[:0]
	return came
}

// lose counts what a daemon took with it.
func (s *sender) lose(came fates) {
	if came == (fates{}) {
		return
	}
	s.c.lost.add(daemonDied, int(came.died))
	s.c.lost.add(ambiguous, int(came.ambiguous))
	s.c.config.Logger.Warn("spanstatsd ended before it said what became of all spans",
		slog.Uint64("handed_over_again", came.again), slog.Uint64("ambiguous", came.ambiguous),
		slog.Uint64("lost_at_most", came.died))
}
