package client

import (
	"log/slog"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// kept contains the buffers of sent spans that are not settled, up to a limit, for the case that the daemon crashes. It
// is used by the sender only.
//
// What happens to these spans depends on how the connection ends:
//
//   - The client has closed it: the daemon has received and counts all spans.
//   - The daemon has shut down gracefully (bye), or crashed: the next daemon knows the outcome of each span from the
//     recovery file of the previous one, and the client asks it in its hello. Spans that no destination has received are
//     resent. Spans that a destination may have received are counted as ambiguous. Settled spans are dropped.
//   - The next daemon does not know the outcome: after a bye, all spans were delivered; after a crash, they are counted
//     as lost, because resending them could count them twice.
//
// A full buffer is kept as it is. The messages of other buffers are copied to the last kept buffer, so that many small
// buffers do not use up the limit.
type kept struct {
	pool       *pool
	maxBuffers int       // limit; 0 if nothing is kept
	buffers    []*buffer // oldest first; never exceeds its capacity
}

// outcomeCounts contains the numbers of spans of an ended connection, by outcome.
type outcomeCounts struct{ resend, ambiguous, lost uint64 }

// add keeps a buffer. If the limit is reached, it drops the oldest one.
func (k *kept) add(b *buffer, upTo uint64) {
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

// hold keeps a buffer regardless of the limit. It is used for a buffer of which only a part was sent.
func (k *kept) hold(b *buffer, upTo uint64) {
	b.upTo = upTo
	k.buffers = append(k.buffers, b)
}

// release drops the buffers whose spans are all settled. settled is the number of settled spans of the connection.
func (k *kept) release(settled uint64) {
	n := 0
	for n < len(k.buffers) && k.buffers[n].upTo <= settled {
		n++
	}
	k.drop(n)
}

// drop drops the n oldest buffers.
func (k *kept) drop(n int) {
	for _, b := range k.buffers[:n] {
		k.pool.give(b)
	}
	k.buffers = slices.Delete(k.buffers, 0, n)
}

// retainUnsent removes all spans except those that have to be resent, and those of a partially written buffer that
// were not sent. sent and settled are the numbers of sent and of settled spans of the connection, and outcomes is the
// list for the spans between them.
func (k *kept) retainUnsent(sent, settled uint64, outcomes []uint64) outcomeCounts {
	lastDropped := sent // number of the last span that is not kept any more
	if len(k.buffers) > 0 {
		lastDropped = min(sent, k.buffers[0].upTo-uint64(k.buffers[0].spans))
	}
	var dropped, found [wire.Resend + 1]uint64 // spans that are no longer kept, and kept spans, by outcome
	for at := settled; at < lastDropped; {
		o, upTo := outcomeOf(outcomes, at+1)
		upTo = min(upTo, lastDropped)
		dropped[o] += upTo - at
		at = upTo
	}
	remaining := k.buffers[:0]
	for _, b := range k.buffers {
		at := b.upTo - uint64(b.spans)
		b.retain(func(spans int) bool {
			at += uint64(spans)
			if at > sent {
				return true
			}
			o := wire.Settled
			if at > settled {
				o, _ = outcomeOf(outcomes, at)
			}
			found[o] += uint64(spans)
			return o == wire.Resend
		})
		if b.spans == 0 {
			k.pool.give(b)
		} else {
			remaining = append(remaining, b)
		}
	}
	k.buffers = remaining
	return outcomeCounts{
		resend:    found[wire.Resend],
		ambiguous: dropped[wire.Doubtful] + found[wire.Doubtful],
		lost:      dropped[wire.Resend],
	}
}

// outcomeOf returns the outcome of the span with the given number, and the number of the last span to which it applies.
func outcomeOf(outcomes []uint64, number uint64) (o wire.Outcome, upTo uint64) {
	for upTo, o := range wire.Outcomes(outcomes) {
		if number <= upTo {
			return o, upTo
		}
	}
	return wire.Resend, math.MaxUint64
}

// supportsRecovery reports whether the next daemon can know the outcome of the spans of this connection if this daemon
// crashes.
func (conn *connection) supportsRecovery() bool {
	return conn.welcome.Settled && conn.welcome.Token != "" && len(conn.welcome.Token) <= wire.MaxToken
}

// releaseOrAsk decides what happens to the unsettled spans of an ended connection. If the daemon has crashed or shut
// down, the next daemon is asked about them. Otherwise the daemon has received them and accounts for them. If the client
// has closed the connection, they remain unsettled in Stats.
func (s *sender) releaseOrAsk(conn *connection) {
	isClosedByClient, unsettled := s.sentByeOn == conn, conn.unsettled()
	hasCrashed := conn.died() && !isClosedByClient
	hasShutDown := conn.saidBye() && !isClosedByClient
	if (hasCrashed || hasShutDown) && unsettled > 0 && conn.supportsRecovery() {
		s.earlier = conn
		return
	}
	if !isClosedByClient && s.client.aborted.Err() == nil {
		conn.settle(conn.sent.Load())
	}
	s.requeue(conn.sent.Load(), conn.sent.Load(), nil)
	if hasCrashed && unsettled > 0 {
		s.countLost(outcomeCounts{lost: unsettled})
	}
}

// applyEarlierOutcomes applies the outcomes in the daemon's welcome to the spans of the earlier connection, if the client
// has asked about one. If the daemon does not know them, the spans are not resent, because they could be counted
// twice; after a bye, an unknown outcome means that they were delivered.
func (s *sender) applyEarlierOutcomes(conn *connection) {
	if earlier := s.earlier; earlier != nil {
		sent, unsettled := earlier.sent.Load(), earlier.unsettled()
		earlier.settle(sent) // so that Stats counts no span twice
		if isKnown := len(conn.welcome.Earlier) > 0; isKnown {
			s.countLost(s.requeue(sent, sent-unsettled, conn.welcome.Earlier))
		} else {
			s.requeue(sent, sent, nil)
			if !earlier.saidBye() {
				s.countLost(outcomeCounts{lost: unsettled})
			}
		}
		s.earlier = nil
	}
	s.kept.maxBuffers = 0
	if conn.supportsRecovery() {
		s.kept.maxBuffers = max(s.client.config.MaxKept, 0) / bufferBytes
	}
	s.client.last.Store(conn)
}

// requeue moves the kept spans that have to be resent to the front of s.pending. They count as buffered again. See
// retainUnsent for the parameters.
func (s *sender) requeue(sent, settled uint64, outcomes []uint64) outcomeCounts {
	counts := s.kept.retainUnsent(sent, settled, outcomes)
	s.client.sent.Add(-counts.resend)
	s.pending = slices.Insert(s.pending, 0, s.kept.buffers...)
	s.kept.buffers = s.kept.buffers[:0]
	return counts
}

// countLost counts and logs the spans that were lost with a daemon, or may have been.
func (s *sender) countLost(counts outcomeCounts) {
	if counts == (outcomeCounts{}) {
		return
	}
	s.client.lost.add(daemonDied, int(counts.lost))
	s.client.lost.add(ambiguous, int(counts.ambiguous))
	s.client.config.Logger.Warn("spanstatsd ended before it said what became of all spans",
		slog.Uint64("handed_over_again", counts.resend), slog.Uint64("ambiguous", counts.ambiguous),
		slog.Uint64("lost_at_most", counts.lost))
}
