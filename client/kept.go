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

// add keeps a buffer that was sent. upTo is the number of the buffer's last span. If the limit is reached, add drops the
// oldest buffer.
func (k *kept) add(b *buffer, upTo uint64) {
	b.upTo = upTo
	if k.maxBuffers == 0 {
		k.pool.give(b)
		return
	}
	n := len(k.buffers)
	if isCopied := n > 0 && k.buffers[n-1].join(b); isCopied {
		k.pool.give(b)
		return
	}
	if n == k.maxBuffers {
		k.drop(1)
	}
	k.hold(b, upTo)
}

// hold keeps a buffer regardless of the limit. It is called for a buffer of which only a part was sent, because the other
// part must not be lost.
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

// retainUnsent removes all kept spans except those that have to be sent: spans with the outcome wire.Resend, and spans
// of a partially written buffer that were not sent at all. It returns the numbers of unsettled spans by outcome,
// including spans that are no longer kept.
//
// The spans of a connection are numbered from 1. Spans up to settled are settled, and outcomes contains the outcomes of
// the spans from there to sent. Spans above sent were not sent.
func (k *kept) retainUnsent(sent, settled uint64, outcomes []uint64) outcomeCounts {
	lastDropped := sent // number of the last span that is no longer kept
	if len(k.buffers) > 0 {
		lastDropped = min(sent, k.buffers[0].upTo-uint64(k.buffers[0].spans))
	}
	var dropped, found [wire.Resend + 1]uint64 // by outcome: spans that are no longer kept, and kept spans
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
			if isUnsent := at > sent; isUnsent {
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

// supportsRecovery reports whether the next daemon can know the outcomes of this connection's spans if this daemon
// crashes or shuts down.
func (conn *connection) supportsRecovery() bool {
	return conn.welcome.Settled && conn.welcome.Token != "" && len(conn.welcome.Token) <= wire.MaxToken
}

// releaseOrAsk handles the unsettled spans of an ended connection:
//
//   - The daemon has crashed or shut down, and supports recovery: the next daemon is asked about the spans.
//   - The client has closed the connection: the spans remain unsettled in Stats.
//   - Otherwise the spans count as settled, and as lost after a crash.
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
	s.requeueUnsent(conn.sent.Load())
	if hasCrashed && unsettled > 0 {
		s.countLost(outcomeCounts{lost: unsettled})
	}
}

// settleEarlier ends the wait for the outcomes of the earlier connection's spans, if the client has asked about one. The
// daemon's answer is in its welcome:
//
//   - It lists the outcomes: spans that no destination has received are resent.
//   - It lists none, after a bye: the previous daemon has delivered all spans.
//   - It lists none, after a crash: the unsettled spans count as lost. They are not resent, because the daemon may have
//     counted them.
func (s *sender) settleEarlier(outcomes []uint64) {
	earlier := s.earlier
	if earlier == nil {
		return
	}
	s.earlier = nil
	sent, unsettled := earlier.sent.Load(), earlier.unsettled()
	earlier.settle(sent) // Stats must not count the spans here and where they are from now on
	if isKnown := len(outcomes) > 0; isKnown {
		settled := sent - unsettled
		s.countLost(s.requeue(sent, settled, outcomes))
		return
	}
	s.requeueUnsent(sent)
	if hasCrashed := !earlier.saidBye(); hasCrashed {
		s.countLost(outcomeCounts{lost: unsettled})
	}
}

// limitKept sets the limit for kept spans of a new connection. Without recovery no span is kept, because the client
// could not find out whether to resend it.
func (s *sender) limitKept(conn *connection) {
	s.kept.maxBuffers = 0
	if conn.supportsRecovery() {
		s.kept.maxBuffers = max(s.client.config.MaxKept, 0) / bufferBytes
	}
}

// requeueUnsent removes all kept spans that were sent. The unsent spans of a partially written buffer are moved to the
// front of s.pending. sent is the number of spans that the connection has sent.
func (s *sender) requeueUnsent(sent uint64) {
	allSettled := sent
	s.requeue(sent, allSettled, nil)
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

// countLost counts and logs the spans of a connection to a previous daemon, except the settled ones.
func (s *sender) countLost(counts outcomeCounts) {
	if counts == (outcomeCounts{}) {
		return
	}
	s.client.lost.add(daemonDied, int(counts.lost))
	s.client.lost.add(ambiguous, int(counts.ambiguous))
	s.client.config.Logger.Warn("spanstatsd crashed before it confirmed all spans",
		slog.Uint64("resent", counts.resend), slog.Uint64("ambiguous", counts.ambiguous),
		slog.Uint64("lost_at_most", counts.lost))
}
