package client

import (
	"log/slog"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// sentBuffers contains buffers that were sent, in case that the daemon crashes and their spans must be resent. A buffer
// is removed when the daemon has settled its spans: it has delivered them to a destination, or counted them as lost.
// Only the sender uses it.
//
// What happens to the spans that are not settled depends on how the connection ends:
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
type sentBuffers struct {
	pool       *pool
	maxBuffers int       // limit; 0 if nothing is kept
	buffers    []*buffer // oldest first; never exceeds its capacity
}

// add takes ownership of a buffer that was sent completely, and stores its spans so that they can be resent.
// lastSpanNumber is the number of spans that the connection has sent, including those of b. If the maximum number of
// buffers is stored, add releases the oldest one, whose spans can no longer be resent.
func (s *sentBuffers) add(b *buffer, lastSpanNumber uint64) {
	b.lastSpanNumber = lastSpanNumber
	if s.maxBuffers == 0 {
		s.pool.release(b)
		return
	}
	wasCopied := s.appendToLast(b)
	if wasCopied {
		s.pool.release(b)
		return
	}
	if len(s.buffers) == s.maxBuffers {
		s.freeOldest(1)
	}
	s.buffers = append(s.buffers, b)
}

// appendToLast appends the messages of b to the last buffer in s. It returns false if they do not fit.
func (s *sentBuffers) appendToLast(b *buffer) bool {
	count := len(s.buffers)
	return count > 0 && s.buffers[count-1].appendMessages(b)
}

// addPartlySent adds a buffer of which only a part was sent. It ignores the maximum number of buffers, because the unsent
// spans must not be lost. lastSpanNumber is the number that the last span of the buffer would have on the connection.
func (s *sentBuffers) addPartlySent(b *buffer, lastSpanNumber uint64) {
	b.lastSpanNumber = lastSpanNumber
	s.buffers = append(s.buffers, b)
}

// freeSettled releases the buffers whose spans are all delivered or lost, according to the daemon. settled is the
// number of such spans, counted from the first span of the connection.
func (s *sentBuffers) freeSettled(settled uint64) {
	count := 0
	for count < len(s.buffers) && s.buffers[count].lastSpanNumber <= settled {
		count++
	}
	s.freeOldest(count)
}

// freeOldest removes the given number of buffers, oldest first, and returns them to the pool.
func (s *sentBuffers) freeOldest(count int) {
	for _, b := range s.buffers[:count] {
		s.pool.release(b)
	}
	s.buffers = slices.Delete(s.buffers, 0, count)
}

// freeAll removes all buffers.
func (s *sentBuffers) freeAll() { s.freeOldest(len(s.buffers)) }

// spanOutcomes contains the outcomes of the spans of an ended connection. The spans are numbered from 1 in the order in
// which they were sent. Spans with higher numbers than sent were not sent.
type spanOutcomes struct {
	sent              uint64   // number of spans that were sent
	settled           uint64   // number of the last span that the daemon has settled during the connection
	unsettledOutcomes []uint64 // encoded outcomes of the spans from settled+1 to sent, see wire.Outcomes
}

// find returns the outcome of the span with the given number. All spans from this one to lastSpanNumber have the same
// outcome. The first span of a connection has number 1. A span that the daemon has not received has the outcome
// wire.Resend.
func (o spanOutcomes) find(number uint64) (outcome wire.Outcome, lastSpanNumber uint64) {
	if number <= o.settled {
		return wire.Settled, o.settled
	}
	for lastOfGroup, groupOutcome := range wire.Outcomes(o.unsettledOutcomes) {
		if number <= lastOfGroup {
			return groupOutcome, lastOfGroup
		}
	}
	return wire.Resend, math.MaxUint64
}

// countsByOutcome contains numbers of spans, with the outcome as the index.
type countsByOutcome [wire.Resend + 1]uint64

// countUpTo counts the spans with the numbers from 1 to last by their outcome.
func (o spanOutcomes) countUpTo(last uint64) (counts countsByOutcome) {
	counted := uint64(0)
	for counted < last {
		outcome, lastOfOutcome := o.find(counted + 1)
		end := min(lastOfOutcome, last)
		counts[outcome] += end - counted
		counted = end
	}
	return counts
}

// outcomeCounts contains the numbers of spans of an ended connection that the daemon has not settled.
type outcomeCounts struct{ resend, ambiguous, lost uint64 }

// keepUndelivered removes all spans from s that must not be resent. It keeps spans that were not sent, and sent
// spans that reached no destination. It returns how many sent spans must be resent, may have reached a destination
// (ambiguous), or are lost because their buffer was freed and they cannot be resent.
func (s *sentBuffers) keepUndelivered(outcomes spanOutcomes) outcomeCounts {
	lastFreed := s.lastFreedSpan(outcomes.sent)
	withoutBuffer := outcomes.countUpTo(lastFreed) // their buffers were freed, so they cannot be resent
	buffered := s.removeDelivered(outcomes)
	return outcomeCounts{
		resend:    buffered[wire.Resend],
		ambiguous: buffered[wire.Ambiguous] + withoutBuffer[wire.Ambiguous],
		lost:      withoutBuffer[wire.Resend],
	}
}

// removeDelivered removes the messages that must not be resent from all buffers, and then releases empty buffers. It
// returns how many sent spans the buffers contained before, by outcome.
func (s *sentBuffers) removeDelivered(outcomes spanOutcomes) (counts countsByOutcome) {
	remaining := s.buffers[:0]
	for _, b := range s.buffers {
		b.removeDelivered(outcomes, &counts)
		if b.spanCount == 0 {
			s.pool.release(b)
		} else {
			remaining = append(remaining, b)
		}
	}
	s.buffers = remaining
	return counts
}

// lastFreedSpan returns the number of the last sent span whose buffer was freed, or 0. sent is the number of sent
// spans.
func (s *sentBuffers) lastFreedSpan(sent uint64) uint64 {
	if len(s.buffers) == 0 {
		return sent
	}
	return min(sent, s.buffers[0].spansBefore())
}

// spansBefore returns the number of spans that were sent on the same connection before the first span of b.
func (b *buffer) spansBefore() uint64 { return b.lastSpanNumber - uint64(b.spanCount) }

// removeDelivered removes the messages from b that must not be resent. It decides that by the outcome of the last
// span in each message. It keeps messages that were not sent completely. It adds the number of spans in each sent
// message to counts.
func (b *buffer) removeDelivered(outcomes spanOutcomes, counts *countsByOutcome) {
	lastSpanNumber := b.spansBefore() // number of the last span before the first message
	b.filterMessages(func(spanCount int) (shouldKeep bool) {
		lastSpanNumber += uint64(spanCount) // number of the last span of this message
		wasSent := lastSpanNumber <= outcomes.sent
		if !wasSent {
			return true
		}
		outcome, _ := outcomes.find(lastSpanNumber)
		counts[outcome] += uint64(spanCount)
		return outcome == wire.Resend
	})
}

// supportsRecovery reports whether the next daemon can tell the client which spans of this connection were delivered,
// after this daemon has crashed or shut down.
func (conn *connection) supportsRecovery() bool {
	token := conn.welcome.Token
	return conn.welcome.Settled && token != "" && len(token) <= wire.MaxToken
}

// handleUnsettled handles the sent spans of an ended connection that the daemon has reported neither as delivered nor
// as lost. If the client has closed the connection, Stats.Unsettled contains them from now on. If the next daemon can
// report their outcome, handleUnsettled stores the connection in s.unresolvedConn. Otherwise, it calls dropUnsettled.
func (s *sender) handleUnsettled(conn *connection) {
	sent := conn.sent.Load()
	unsettled := conn.unsettled()
	hasClientClosed := s.sentByeOn == conn // a bye is the last message of the client
	switch {
	case hasClientClosed:
		s.requeueOnlyUnsent(sent) // without conn.recordSettled, which would reset Stats.Unsettled
	case unsettled > 0 && conn.isKnownToNextDaemon():
		s.unresolvedConn = conn
	default:
		s.dropUnsettled(conn, sent, unsettled)
	}
}

// dropUnsettled removes the sent spans of an ended connection whose outcome will never be known. If the daemon has
// crashed, the unsettled spans count as lost. Otherwise they count as delivered, unless the context of Close has ended:
// then Stats.Unsettled still contains them.
func (s *sender) dropUnsettled(conn *connection, sent, unsettled uint64) {
	hasCloseTimedOut := s.client.ctx.Err() != nil
	if !hasCloseTimedOut {
		conn.recordSettled(sent) // sets Stats.Unsettled to 0
	}
	s.requeueOnlyUnsent(sent)
	if conn.hasCrashed() {
		s.countOutcomes(outcomeCounts{lost: unsettled})
	}
}

// isKnownToNextDaemon reports whether the next daemon can tell which spans of an ended connection were delivered: the
// daemon has crashed or shut down, and supports recovery.
func (conn *connection) isKnownToNextDaemon() bool {
	hasDaemonEnded := conn.hasCrashed() || conn.saidBye()
	return hasDaemonEnded && conn.supportsRecovery()
}

// applyOutcomes applies the new daemon's report about the spans of the ended connection s.unresolvedConn. Spans that
// reached no destination are moved back to the queue. outcomes is the report, the value of wire.Welcome.Earlier. If it
// is empty, all spans count as lost after a crash of the previous daemon, and as delivered after a graceful shutdown.
func (s *sender) applyOutcomes(outcomes []uint64) {
	conn := s.unresolvedConn
	if conn == nil {
		return
	}
	s.unresolvedConn = nil
	sent := conn.sent.Load()
	settled := conn.settled.Load()
	conn.recordSettled(sent) // sets Stats.Unsettled to 0
	if len(outcomes) > 0 {
		counts := s.requeueUndelivered(spanOutcomes{sent: sent, settled: settled, unsettledOutcomes: outcomes})
		s.countOutcomes(counts)
		return
	}
	s.requeueOnlyUnsent(sent)
	isGraceful := conn.saidBye()
	if !isGraceful {
		s.countOutcomes(outcomeCounts{lost: sent - settled})
	}
}

// limitSentBuffers sets the maximum number of sent buffers that are kept for resending. It is 0 if the next daemon
// could not know which spans of this connection to resend.
func (s *sender) limitSentBuffers(conn *connection) {
	s.sentBuffers.maxBuffers = 0
	if conn.supportsRecovery() {
		s.sentBuffers.maxBuffers = max(s.client.config.MaxKept, 0) / bufferBytes
	}
}

// requeueOnlyUnsent moves the spans of a partly sent buffer that were not sent back to s.pending, and drops all sent
// spans from s.sentBuffers. sent is the number of spans that the connection has sent.
func (s *sender) requeueOnlyUnsent(sent uint64) {
	s.requeueUndelivered(spanOutcomes{sent: sent, settled: sent})
}

// requeueUndelivered moves the spans that were not sent or must be resent from s.sentBuffers to the front of s.pending,
// and drops all others. It returns the number of sent spans for each outcome.
func (s *sender) requeueUndelivered(outcomes spanOutcomes) outcomeCounts {
	counts := s.sentBuffers.keepUndelivered(outcomes)
	s.client.sent.Add(-counts.resend) // subtracts them, because they are counted again when they are resent
	s.pending = slices.Insert(s.pending, 0, s.sentBuffers.buffers...)
	s.sentBuffers.buffers = s.sentBuffers.buffers[:0]
	return counts
}

// countOutcomes adds the numbers of lost and ambiguous spans to the statistics, and logs a warning that also
// contains the number of resent spans. It does nothing if all numbers are 0.
func (s *sender) countOutcomes(counts outcomeCounts) {
	if counts == (outcomeCounts{}) {
		return
	}
	s.client.lost.add(daemonDied, int(counts.lost))
	s.client.lost.add(ambiguous, int(counts.ambiguous))
	s.client.config.Logger.Warn("spanstatsd crashed before it confirmed all spans",
		slog.Uint64("resent", counts.resend), slog.Uint64("ambiguous", counts.ambiguous),
		slog.Uint64("lost_at_most", counts.lost))
}
