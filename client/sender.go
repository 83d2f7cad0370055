package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// sender is the goroutine that writes submitted buffers to the connection and reconnects.
type sender struct {
	client         *Client
	pending        []*buffer   // buffers to send, oldest first; never exceeds its capacity
	sentBuffers    sentBuffers // buffers sent over the current connection, or over unresolvedConn
	unresolvedConn *connection // ended connection about whose spans the client must ask the next daemon, or nil
	flushes        []*flush    // flush requests to send
	reported       [reasons]uint64
	backoff        backoff
	schedule       schedule
	flushTimer     *time.Timer // fires when the snapshots in the shards must be sent
	isTimerSet     bool
	disconnectedAt time.Time // end of the last connection, or the time of Open

	isUnavailable bool        // the daemon is unavailable, and this was logged
	hasGivenUp    bool        // the daemon has been unavailable for MaxAway, and this was logged
	closeErr      error       // why the daemon did not close the last connection properly
	sentByeOn     *connection // connection on which the client has sent bye, or nil
}

func newSender(c *Client) *sender {
	maxBuffers := len(c.pool.buffers)
	s := &sender{
		client:         c,
		pending:        make([]*buffer, 0, maxBuffers),
		sentBuffers:    sentBuffers{pool: c.pool, buffers: make([]*buffer, 0, maxBuffers)},
		backoff:        backoff{max: c.config.MaxBackoff},
		flushTimer:     time.NewTimer(time.Hour),
		disconnectedAt: time.Now(),
	}
	s.flushTimer.Stop()
	return s
}

// run connects and sends spans until the client is closed. It returns when all spans are sent or cannot be sent.
func (s *sender) run() {
	defer close(s.client.done)
	defer s.client.cancel()
	isFinished := false
	for !isFinished {
		conn := s.connect()
		if conn == nil {
			break
		}
		isFinished = s.serve(conn)
		s.disconnect(conn)
	}
	s.finish()
}

// connect tries to connect to the daemon until it succeeds. After a call of Close, it returns nil if there is nothing
// to send. Otherwise, it then makes one more attempt, and returns nil if that fails, unless the daemon has asked the
// client to try again later.
func (s *sender) connect() *connection {
	for {
		isClosing := s.client.isClosing.Load() // if Close is called after this line, another attempt follows
		if isClosing {
			s.collectAllBuffers() // so that needsConnection considers all published spans
			if !s.needsConnection() {
				return nil
			}
		}
		conn, err := dial(s.client, s.unresolvedConn)
		if err == nil {
			s.start(conn)
			return conn
		}
		s.logUnavailable(err)
		isLastAttempt := isClosing && !s.shouldRetryOnClose(err)
		if isLastAttempt {
			return nil
		}
		s.refuseSpansIfAwayTooLong()
		s.pause(isClosing)
	}
}

// needsConnection reports whether there are spans to send, or sent spans whose outcome the next daemon knows.
func (s *sender) needsConnection() bool {
	return len(s.pending) > 0 || s.unresolvedConn != nil
}

// logUnavailable logs why the client cannot connect, once until it is connected again.
func (s *sender) logUnavailable(err error) {
	if s.isUnavailable {
		return
	}
	s.isUnavailable = true
	s.client.config.Logger.Warn("can't connect to spanstatsd; buffering spans and retrying",
		slog.String("socket", s.client.config.Socket), slog.Any("error", err))
}

// earlierPending is the reason of a bye from a daemon that does not know the outcome of earlier spans yet.
const earlierPending = "earlier_pending"

// shouldRetryOnClose reports whether Close waits for another attempt to connect after the given error. It waits only
// for a daemon that will know the outcome of spans when the previous daemon has shut down.
func (s *sender) shouldRetryOnClose(err error) bool {
	var bye *byeError
	isPending := errors.As(err, &bye) && bye.Reason == earlierPending
	return isPending && s.client.ctx.Err() == nil
}

// pause waits before the next attempt to connect. It returns early when Close is called. If isClosing is true, Close was
// called already, and pause returns early when the context that was passed to Close ends.
func (s *sender) pause(isClosing bool) {
	var wakeUp <-chan struct{} = s.client.closing
	if isClosing {
		wakeUp = s.client.ctx.Done()
	}
	select {
	case <-time.After(s.backoff.next()):
	case <-wakeUp:
	}
}

// refuseSpansIfAwayTooLong makes Publish refuse spans once the daemon has been unavailable for Config.MaxAway, and
// logs that. Spans that were published before remain buffered, and are sent when a daemon is available again.
func (s *sender) refuseSpansIfAwayTooLong() {
	unavailableFor := time.Since(s.disconnectedAt)
	if s.hasGivenUp || unavailableFor < s.client.config.MaxAway {
		return
	}
	s.hasGivenUp = true
	s.client.gate.refuse(disconnected)
	// The shards can get no more spans until the daemon is back. collectAllBuffers also removes the labels from the
	// shards, so that the application can free their strings.
	s.collectAllBuffers()
	s.client.config.Logger.Warn("spanstatsd is still unreachable; spans are dropped and counted until it is back",
		slog.String("socket", s.client.config.Socket), slog.Duration("unreachable_for", unavailableFor))
}

// start prepares the sender for a new connection, and starts the goroutine that reads from it.
func (s *sender) start(conn *connection) {
	s.isUnavailable = false
	s.hasGivenUp = false
	s.schedule = newSchedule(s.client.config.MaxAge, conn.welcome.Interval)
	s.applyOutcomes(conn.welcome.Earlier)
	s.limitSentBuffers(conn)
	s.client.lastConn.Store(conn)
	s.client.connects.Add(1)
	s.client.daemonName.Store(&conn.welcome.Daemon)
	s.client.config.Logger.Info("connected to spanstatsd", slog.String("socket", s.client.config.Socket),
		slog.String("daemon", conn.welcome.Daemon))
	go conn.read(s.client)
}

// disconnect closes a connection, and decides what happens to the spans whose outcome is unknown.
func (s *sender) disconnect(conn *connection) {
	if s.sentByeOn != conn {
		s.awaitLastMessage(conn)
	}
	conn.close()
	s.client.daemonName.Store(nil)
	s.handleUnsettled(conn)
	s.disconnectedAt = time.Now()
	s.backoff.reset(time.Since(conn.connectedAt))
	s.client.config.Logger.Info("disconnected from spanstatsd", slog.Any("reason", conn.endReason))
}

// awaitLastMessage is called after a failed write. It waits until the goroutine that reads from conn has read the
// last message of the daemon and has ended, and at most for byeTimeout. The last message is a bye if the daemon has
// shut down gracefully.
func (s *sender) awaitLastMessage(conn *connection) {
	select {
	case <-conn.ended:
	case <-time.After(byeTimeout):
	case <-s.client.ctx.Done():
	}
}

// serve sends spans over conn until the connection ends or the client is closed. It returns true if the client is
// closed and has sent everything, so that no further connection is needed.
func (s *sender) serve(conn *connection) (isFinished bool) {
	err := s.sendAllBuffers(conn)
	for err == nil {
		select {
		case <-conn.ended:
			return false
		case <-s.client.wake:
			err = s.sendFullBuffers(conn)
		case <-s.flushTimer.C:
			err = s.sendAllBuffers(conn)
		case f := <-s.client.flushes:
			s.flushes = append(s.flushes, f)
			err = s.sendAllBuffers(conn)
		case <-s.client.closing:
			return s.closeGracefully(conn)
		}
	}
	return false
}

// sendFullBuffers sends the full buffers. If other buffers contain snapshots, it starts the timer for sending them.
func (s *sender) sendFullBuffers(conn *connection) error {
	if s.client.isSendScheduled.Load() && !s.isTimerSet {
		s.isTimerSet = true
		s.flushTimer.Reset(s.schedule.wait(time.Now()))
	}
	s.pending = s.client.pool.takeSubmitted(s.pending)
	return s.sendPending(conn)
}

// sendAllBuffers sends all published spans, including those in buffers that are not full. It then reports the
// number of lost spans, and sends the requests of pending Flush calls.
func (s *sender) sendAllBuffers(conn *connection) error {
	s.flushTimer.Stop()
	s.isTimerSet = false
	s.collectAllBuffers()
	if err := s.sendPending(conn); err != nil {
		return err
	}
	if err := s.reportLosses(conn); err != nil {
		return err
	}
	return s.requestFlushes(conn)
}

// collectAllBuffers moves the buffers of all shards to s.pending, full or not. The shards then contain no strings of the
// application.
func (s *sender) collectAllBuffers() {
	// This must precede the loop, so that publishers schedule another send for spans that the loop misses.
	s.client.isSendScheduled.Store(false)
	for i := range s.client.shards {
		shard := &s.client.shards[i]
		shard.lockByPolling() // so that no publisher must wake up this goroutine when it unlocks the shard
		shard.submitBuffer()
		shard.mu.Unlock()
	}
	s.pending = s.client.pool.takeSubmitted(s.pending)
}

// sendPending sends the buffers in s.pending and removes them. If one cannot be sent, the buffers after it remain.
func (s *sender) sendPending(conn *connection) error {
	s.sentBuffers.freeSettled(conn.settled.Load())
	for i, b := range s.pending {
		if err := s.sendBuffer(conn, b); err != nil {
			s.pending = slices.Delete(s.pending, 0, i+1)
			return err
		}
	}
	s.pending = s.pending[:0]
	return nil
}

// sendBuffer sends a buffer. If the daemon wants no statistics, it counts the spans as lost instead.
func (s *sender) sendBuffer(conn *connection, b *buffer) error {
	if !s.client.Features().Stats {
		s.client.lost.add(notWanted, b.spanCount)
		s.client.pool.release(b)
		return nil
	}
	lastSpanNumber := conn.sent.Load() + uint64(b.spanCount)
	bytesWritten, err := conn.socket.Write(b.bytes())
	if err != nil {
		s.countSent(conn, b.countWrittenSpans(bytesWritten))
		s.sentBuffers.addPartlySent(b, lastSpanNumber)
		return fmt.Errorf("write spans: %w", err)
	}
	s.countSent(conn, b.spanCount)
	s.sentBuffers.add(b, lastSpanNumber)
	return nil
}

// countSent counts spans that the socket has accepted.
func (s *sender) countSent(conn *connection, spans int) {
	s.client.sent.Add(uint64(spans))
	conn.sent.Add(uint64(spans))
}

// reportLosses sends the numbers of spans that were refused or lost since the last report, by reason.
func (s *sender) reportLosses(conn *connection) error {
	counts := s.client.notCounted()
	if counts == s.reported {
		return nil
	}
	newLosses := wire.Lost{}
	for i, count := range counts {
		if count > s.reported[i] {
			newLosses[reasonNames[i]] = count - s.reported[i]
		}
	}
	if _, err := conn.socket.Write(wire.AppendLost(nil, newLosses)); err != nil {
		return fmt.Errorf("write lost: %w", err)
	}
	s.reported = counts
	return nil
}

// requestFlushes sends a request for each pending call of Flush to the daemon. It skips calls whose context is
// done. After a write error, the requests that were not sent remain in s.flushes.
func (s *sender) requestFlushes(conn *connection) error {
	for len(s.flushes) > 0 {
		f := s.flushes[0]
		if f.ctx.Err() == nil {
			if err := conn.requestFlush(f); err != nil {
				return err
			}
		}
		s.flushes = s.flushes[1:]
	}
	return nil
}

// settleTimeout is how long Close waits until the daemon has reported the outcome of all sent spans.
const settleTimeout = 3 * time.Second

// closeTimeout is how long Close waits for the daemon to close the connection if the outcome of spans is
// unknown: the daemon responds to the client's flush request first, which takes as long as a destination is
// unavailable.
const closeTimeout = time.Second

// closeGracefully sends all remaining spans and a bye, the last message, and waits until the daemon has closed the
// connection. It returns false if sending fails, so that the caller can send the remaining spans on another
// connection.
func (s *sender) closeGracefully(conn *connection) (isFinished bool) {
	if err := s.sendAllBuffers(conn); err != nil {
		return false
	}
	hasTimedOut, err := s.awaitOutcomes(conn)
	if err != nil {
		return false
	}
	bye := wire.AppendBye(nil, &wire.Bye{Reason: "closed"})
	if _, err := conn.socket.Write(bye); err != nil {
		return false
	}
	s.sentByeOn = conn
	conn.socket.CloseWrite()
	s.awaitClosed(conn, hasTimedOut)
	return true
}

// awaitClosed waits until the daemon has closed the connection. It waits for closeTimeout at most if hasTimedOut
// is true, which means that the daemon has not responded to the last request. If the connection ends with an error,
// awaitClosed sets s.closeErr.
func (s *sender) awaitClosed(conn *connection, hasTimedOut bool) {
	var timeout <-chan time.Time // never ready while it is nil
	if hasTimedOut {
		timeout = time.After(closeTimeout)
	}
	select {
	case <-conn.ended:
		if !conn.endedCleanly() {
			s.closeErr = conn.endReason
		}
	case <-timeout:
	}
}

// awaitOutcomes asks the daemon to export all spans now, and waits for the response. It does nothing if the daemon has
// already reported the outcome of all spans, or if resending is disabled. hasTimedOut is true if there is no response
// within settleTimeout. awaitOutcomes returns an error if it can't send the request, if the connection ends, or if the
// context of Close is done.
func (s *sender) awaitOutcomes(conn *connection) (hasTimedOut bool, err error) {
	isResendingEnabled := s.sentBuffers.maxBuffers > 0
	if !isResendingEnabled || conn.unsettled() == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(s.client.ctx, settleTimeout)
	defer cancel()
	f := newFlush(ctx)
	if err := conn.requestFlush(f); err != nil {
		return false, err
	}
	select {
	case <-f.result:
	case <-conn.ended:
		return false, conn.endReason
	case <-ctx.Done():
		hasTimedOut = true
	}
	return hasTimedOut, s.client.ctx.Err()
}

// finish releases all buffers, and sets the result of Close. Spans that were not sent count as lost.
func (s *sender) finish() {
	s.collectAllBuffers()
	if s.unresolvedConn != nil {
		s.requeueOnlyUnsent(s.unresolvedConn.sent.Load())
	}
	s.sentBuffers.freeAll()
	s.logUnsettled()
	lostSpans := s.dropPending()
	for _, f := range s.flushes {
		f.fail(errClosed)
	}
	switch {
	case lostSpans > 0:
		s.client.closeErr = fmt.Errorf("close client: %d spans could not be sent and are lost", lostSpans)
	case s.closeErr != nil:
		s.client.closeErr = fmt.Errorf("close client: wait for the daemon to close the connection: %w", s.closeErr)
	}
}

// logUnsettled logs the number of sent spans whose outcome the daemon has not reported, if there are any.
func (s *sender) logUnsettled() {
	conn := s.client.lastConn.Load()
	if conn == nil || conn.unsettled() == 0 {
		return
	}
	s.client.config.Logger.Warn("closed before spanstatsd confirmed all spans",
		slog.Uint64("unsettled", conn.unsettled()))
}

// dropPending counts the spans in s.pending as lost, and returns their number.
func (s *sender) dropPending() (spans int) {
	for _, b := range s.pending {
		spans += b.spanCount
		s.client.lost.add(closed, b.spanCount)
		s.client.pool.release(b)
	}
	s.pending = s.pending[:0]
	return spans
}

const (
	// minInterval and maxInterval bound the daemon's interval. Other values are treated as unknown.
	minInterval = time.Second
	maxInterval = time.Hour

	// The lead is how long before the end of an interval spans are sent. At least minLead is needed until
	// the daemon has counted them. The rest is random, so that the tracers of a pod do not all send at the
	// same time.
	minLead    = 100 * time.Millisecond
	randomLead = 200 * time.Millisecond
)

// schedule decides how long a buffer that is not full waits for more spans. At the rates of a typical pod, a write
// costs more than the spans that it sends, because it wakes up both processes, and the statistics are not used before
// the end of the daemon's interval. So a buffer waits as long as possible, but is sent early enough to be counted in
// the current interval.
type schedule struct {
	maxWait  time.Duration
	interval time.Duration // the daemon's interval; 0 if unknown
	lead     time.Duration // time before the end of an interval at which everything is sent
}

// newSchedule returns a schedule that sends spans shortly before each export of the daemon, and after maxWait at the
// latest. interval is the time between two exports in nanoseconds; an implausible value such as 0 is ignored. The
// time between sending and the export is partly random, so that clients do not all send at once.
func newSchedule(maxWait time.Duration, interval uint64) schedule {
	s := schedule{maxWait: maxWait, lead: minLead + rand.N(randomLead)}
	isPlausible := interval >= uint64(minInterval) && interval <= uint64(maxInterval)
	if isPlausible {
		s.interval = time.Duration(interval)
	}
	return s
}

// wait returns how long a span that is published now waits for further spans before it is sent. It is sent shortly
// before the daemon's next export, and after s.maxWait at the latest. Export intervals are aligned to the Unix epoch:
// one of a minute ends at each full minute.
func (s *schedule) wait(now time.Time) time.Duration {
	if s.interval == 0 {
		return s.maxWait
	}
	elapsed := time.Duration(now.UnixNano()) % s.interval
	untilSend := s.interval - elapsed - s.lead
	if untilSend <= 0 { // too late for this interval
		untilSend += s.interval
	}
	return min(s.maxWait, untilSend)
}
