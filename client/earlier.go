package client

import (
	"log/slog"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

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
