package client

import (
	"log/slog"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// keptBuffers are the buffers that were sent on a connection and are not settled, as far as memory
// permits: if the daemon crashes, they may have to be sent again. Only the sender uses them.
//
// A full buffer is kept as it is. The messages of a smaller one are appended to the last kept
// buffer, including their definitions, so that buffers sent early do not take more memory than they
// need.
type keptBuffers struct {
	pool       *pool
	maxBuffers int       // maximum number of buffers
	buffers    []*buffer // oldest first; never reallocated
}

// outcomeCounts counts the spans of an ended connection by what happens to them.
type outcomeCounts struct{ again, ambiguous, died uint64 }

// add keeps a buffer that was sent. If there are too many, it drops the oldest.
func (k *keptBuffers) add(b *buffer, upTo uint64) {
	b.upTo = upTo
	n := len(k.buffers)
	if k.maxBuffers == 0 || n > 0 && k.buffers[n-1].join(b) {
		k.pool.give(b)
		return
	}
	if n == k.maxBuffers {
		k.drop(1)
	}
	k.hold(b, upTo)
}

// hold keeps a buffer even if there are too many, for a buffer that was sent only in part.
func (k *keptBuffers) hold(b *buffer, upTo uint64) {
	b.upTo = upTo
	k.buffers = append(k.buffers, b)
}

// release drops the buffers that are settled.
func (k *keptBuffers) release(settled uint64) {
	n := 0
	for n < len(k.buffers) && k.buffers[n].upTo <= settled {
		n++
	}
	k.drop(n)
}

func (k *keptBuffers) drop(n int) {
	for _, b := range k.buffers[:n] {
		k.pool.give(b)
	}
	k.buffers = slices.Delete(k.buffers, 0, n)
}

// filterUndelivered removes the spans that must not be sent again, according to the outcomes of the
// connection's spans. It keeps spans that a partly sent buffer contains after the last span sent.
// sent and settled are the numbers of spans sent and settled on the connection.
func (k *keptBuffers) filterUndelivered(sent, settled uint64, outcomes []uint64) outcomeCounts {
	first := sent // number of the last span before the kept ones
	if len(k.buffers) > 0 {
		first = min(sent, k.buffers[0].upTo-uint64(k.buffers[0].spans))
	}
	var gone, found [wire.Again + 1]uint64 // spans that are not kept, and that are, by outcome
	for at := settled; at < first; {
		result, upTo := outcome(outcomes, at+1)
		upTo = min(upTo, first)
		gone[result] += upTo - at
		at = upTo
	}
	again := k.buffers[:0]
	for _, b := range k.buffers {
		at := b.upTo - uint64(b.spans)
		b.retain(func(spans int) bool {
			at += uint64(spans)
			if at > sent {
				return true
			}
			result := wire.Settled
			if at > settled {
				result, _ = outcome(outcomes, at)
			}
			found[result] += uint64(spans)
			return result == wire.Again
		})
		if b.spans == 0 {
			k.pool.give(b)
		} else {
			again = append(again, b)
		}
	}
	k.buffers = again
	return outcomeCounts{found[wire.Again], gone[wire.Doubtful] + found[wire.Doubtful], gone[wire.Again]}
}

// outcome returns the outcome of the span with a number, and the number of the last span with the
// same outcome.
func outcome(outcomes []uint64, number uint64) (result wire.Outcome, upTo uint64) {
	for upTo, result := range wire.Outcomes(outcomes) {
		if number <= upTo {
			return result, upTo
		}
	}
	return wire.Again, math.MaxUint64
}

// isRecoverable reports whether the next daemon can tell the outcomes of the connection's spans,
// should this one crash.
func (l *connection) isRecoverable() bool {
	return l.says.Settled && l.says.Token != "" && len(l.says.Token) <= wire.MaxToken
}

// leave handles the unsettled spans of an ended connection. If the daemon has crashed, or is
// shutting down and may crash before it has delivered them, the next daemon is asked about them.
// Otherwise the daemon accounts for them. If neither is possible, they are counted as lost.
func (s *sender) leave(l *connection) {
	wasOurBye, unsettled := s.byeConn == l, l.unsettled()
	crashed := l.daemonCrashed() && !wasOurBye
	if (crashed || l.saidBye() && !wasOurBye) && unsettled > 0 && l.isRecoverable() {
		s.earlier = l
		return
	}
	if !wasOurBye && s.client.aborted.Err() == nil {
		l.settle(l.sent.Load())
	}
	s.requeue(l.sent.Load(), l.sent.Load(), nil)
	if crashed && unsettled > 0 {
		s.countLost(outcomeCounts{died: unsettled})
	}
}

// applyOutcomes applies the outcomes of an earlier connection, if the daemon was asked about one:
// it sends spans again, or counts them as lost. If the daemon does not know the outcomes, nothing
// is sent again, because it could be counted twice. After a bye, unknown outcomes mean that the
// spans were delivered.
func (s *sender) applyOutcomes(l *connection) {
	if earlier := s.earlier; earlier != nil {
		sent, unsettled := earlier.sent.Load(), earlier.unsettled()
		earlier.settle(sent) // so that Stats counts no span twice
		if len(l.says.Earlier) > 0 {
			s.countLost(s.requeue(sent, sent-unsettled, l.says.Earlier))
		} else {
			s.requeue(sent, sent, nil)
			if !earlier.saidBye() {
				s.countLost(outcomeCounts{died: unsettled})
			}
		}
		s.earlier = nil
	}
	s.kept.maxBuffers = 0
	if l.isRecoverable() {
		s.kept.maxBuffers = max(s.client.config.MaxKept, 0) / bufferBytes
	}
	s.client.last.Store(l)
}

// requeue puts the spans that must be sent again before all other pending ones, and counts them as
// buffered again.
func (s *sender) requeue(sent, settled uint64, outcomes []uint64) outcomeCounts {
	counts := s.kept.filterUndelivered(sent, settled, outcomes)
	s.client.sent.Add(-counts.again)
	s.pending = slices.Insert(s.pending, 0, s.kept.buffers...)
	s.kept.buffers = s.kept.buffers[:0]
	return counts
}

// countLost counts the spans lost by a crash of the daemon.
func (s *sender) countLost(counts outcomeCounts) {
	if counts == (outcomeCounts{}) {
		return
	}
	s.client.lost.add(daemonDied, int(counts.died))
	s.client.lost.add(ambiguous, int(counts.ambiguous))
	s.client.config.Logger.Warn("spanstatsd ended before it said what became of all spans",
		slog.Uint64("handed_over_again", counts.again), slog.Uint64("ambiguous", counts.ambiguous),
		slog.Uint64("lost_at_most", counts.died))
}
