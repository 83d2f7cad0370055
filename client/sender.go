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

// sender is the goroutine that writes sealed buffers to the connection and reconnects.
type sender struct {
	client   *Client
	pending  []*buffer   // sealed buffers to send, oldest first; never exceeds its capacity
	kept     kept        // sent buffers of the current connection, or of earlier if it is set
	earlier  *connection // connection whose unsettled spans the next daemon is asked about, or nil
	flushes  []*flush    // flush requests to send
	reported [reasons]uint64
	backoff  backoff
	schedule schedule
	due      *time.Timer // fires when the snapshots in the shards must be sent
	isDue    bool        // the timer runs
	since    time.Time   // end of the last connection, or the time of Open

	isUnavailable bool        // the daemon is unavailable, and this was logged
	hasGivenUp    bool        // it has been for MaxAway, and this was logged
	closeErr      error       // why the daemon did not close the last connection properly
	sentByeOn     *connection // connection on which the client has sent bye, or nil
}

func newSender(c *Client) *sender {
	s := &sender{
		client:  c,
		pending: make([]*buffer, 0, len(c.pool.buffers)),
		kept:    kept{pool: c.pool, buffers: make([]*buffer, 0, len(c.pool.buffers))},
		backoff: backoff{max: c.config.MaxBackoff},
		due:     time.NewTimer(time.Hour),
		since:   time.Now(),
	}
	s.due.Stop()
	return s
}

// sealAll seals the buffers of all shards and appends them to s.pending. It resets armed first, so that a publisher that
// adds to a shard after it was sealed sets armed again and wakes the sender.
func (s *sender) sealAll() {
	s.client.armed.Store(false)
	for i := range s.client.shards {
		shard := &s.client.shards[i]
		shard.lock()
		shard.seal()
		shard.mu.Unlock()
	}
	s.pending = s.client.pool.appendSealed(s.pending)
}

// write sends the pending buffers. If the daemon wants no statistics, it counts their spans as lost instead.
func (s *sender) write(conn *connection) (err error) {
	s.kept.release(conn.settled.Load())
	done := 0
	for done < len(s.pending) && err == nil {
		if b := s.pending[done]; s.client.Features().Stats {
			err = s.writeBuffer(conn, b)
		} else {
			s.client.lost.add(notWanted, b.spans)
			s.client.pool.give(b)
		}
		done++
	}
	s.pending = slices.Delete(s.pending, 0, done)
	return err
}

// writeBuffer sends a buffer and keeps it. If the write fails, the buffer is always kept: which of its spans have to be
// resent is decided when the reason for the end of the connection is known.
func (s *sender) writeBuffer(conn *connection, b *buffer) error {
	sent, upTo := b.spans, conn.sent.Load()+uint64(b.spans)
	n, err := conn.socket.Write(b.bytes())
	if err != nil {
		sent = b.spansIn(n)
	}
	s.client.sent.Add(uint64(sent))
	conn.sent.Add(uint64(sent))
	if err != nil {
		s.kept.hold(b, upTo)
		return fmt.Errorf("write spans: %w", err)
	}
	s.kept.add(b, upTo)
	return nil
}

// report sends the numbers of spans that were lost since the last report that was sent.
func (s *sender) report(conn *connection) error {
	counts := s.client.notCounted()
	if counts == s.reported {
		return nil
	}
	lost := wire.Lost{}
	for i, n := range counts {
		if n > s.reported[i] {
			lost[reasonNames[i]] = n - s.reported[i]
		}
	}
	if _, err := conn.socket.Write(wire.AppendLost(nil, lost)); err != nil {
		return fmt.Errorf("write lost: %w", err)
	}
	s.reported = counts
	return nil
}

// run connects and sends until the client is closed and everything is sent, or cannot be sent.
func (s *sender) run() {
	defer close(s.client.done)
	defer s.client.abort()
	for isOver := false; !isOver; {
		conn := s.connect()
		if conn == nil {
			break
		}
		isOver = s.serve(conn)
		s.disconnect(conn)
	}
	s.finish()
}

// connect tries to connect until it succeeds. When the client is being closed, it tries one last time, and only if there
// are spans to send or unsettled spans to ask about. It returns nil if this fails. If the daemon does not know the
// outcome of these spans yet, because its predecessor is still shutting down, it is asked again.
func (s *sender) connect() *connection {
	for {
		isLast := s.client.isClosing.Load()
		if isLast {
			if s.sealAll(); len(s.pending) == 0 && s.earlier == nil {
				return nil
			}
		}
		conn, err := dial(s.client, s.earlier)
		if err == nil {
			s.start(conn)
			return conn
		}
		if !s.isUnavailable {
			s.isUnavailable = true
			s.client.config.Logger.Warn("can't connect to spanstatsd; buffering spans and retrying",
				slog.String("socket", s.client.config.Socket), slog.Any("error", err))
		}
		var bye *byeError
		isPending := errors.As(err, &bye) && bye.Reason == earlierPending
		if isLast && (!isPending || s.client.aborted.Err() != nil) {
			return nil
		}
		s.refuseAfterMaxAway()
		s.pause(isLast)
	}
}

// earlierPending is the reason of the daemon's bye if it does not know the outcome of earlier spans yet.
const earlierPending = "earlier_pending"

// pause waits before the next attempt to connect. The wait ends early when Close is called. If isClosing, Close
// was called already, and the wait ends early when the context of Close is done.
func (s *sender) pause(isClosing bool) {
	end := (<-chan struct{})(s.client.closing)
	if isClosing {
		end = s.client.aborted.Done()
	}
	select {
	case <-time.After(s.backoff.next()):
	case <-end:
	}
}

// refuseAfterMaxAway closes the gate when the daemon has been unavailable for MaxAway. Spans that were buffered before
// are still sent to the next daemon. The shards are sealed so that they free the caller's label strings.
func (s *sender) refuseAfterMaxAway() {
	if s.hasGivenUp || time.Since(s.since) < s.client.config.MaxAway {
		return
	}
	s.hasGivenUp = true
	s.client.gate.set(disconnected)
	s.sealAll()
	s.client.config.Logger.Warn("spanstatsd is still unreachable; spans are dropped and counted until it is back",
		slog.String("socket", s.client.config.Socket), slog.Duration("unreachable_for", time.Since(s.since)))
}

// start prepares the sender for a new connection, and starts its reader.
func (s *sender) start(conn *connection) {
	s.isUnavailable, s.hasGivenUp = false, false
	s.schedule = newSchedule(s.client.config.MaxAge, conn.welcome.Interval)
	s.settleEarlier(conn.welcome.Earlier)
	s.limitKept(conn)
	s.client.last.Store(conn)
	s.client.connects.Add(1)
	s.client.daemon.Store(&conn.welcome.Daemon)
	s.client.config.Logger.Info("connected to spanstatsd", slog.String("socket", s.client.config.Socket),
		slog.String("daemon", conn.welcome.Daemon))
	go conn.read(s.client)
}

// disconnect closes a connection, and decides what happens to its unsettled spans.
func (s *sender) disconnect(conn *connection) {
	if s.sentByeOn != conn {
		s.awaitEnd(conn)
	}
	conn.close()
	s.client.daemon.Store(nil)
	s.releaseOrAsk(conn)
	s.since = time.Now()
	s.backoff.reset(time.Since(conn.since))
	s.client.config.Logger.Info("disconnected from spanstatsd", slog.Any("reason", conn.ending))
}

// awaitEnd waits after a failed write until the reader has read the daemon's last message. A daemon that shuts down
// gracefully says bye after it has read everything; a crashed one does not.
func (s *sender) awaitEnd(conn *connection) {
	select {
	case <-conn.gone:
	case <-time.After(byeTimeout):
	case <-s.client.aborted.Done():
	}
}

// serve sends spans until the connection ends or the client is closed. It returns true if the client is closed and has
// sent its last message (bye), so that no further connection is needed.
func (s *sender) serve(conn *connection) (isOver bool) {
	err := s.sendAllBuffers(conn)
	for err == nil {
		select {
		case <-conn.gone:
			return false
		case <-s.client.wake:
			err = s.sendFullBuffers(conn)
		case <-s.due.C:
			err = s.sendAllBuffers(conn)
		case f := <-s.client.flushes:
			s.flushes = append(s.flushes, f)
			err = s.sendAllBuffers(conn)
		case <-s.client.closing:
			return s.bye(conn)
		}
	}
	return false
}

// sendFullBuffers sends the full buffers, and starts the timer for the others.
func (s *sender) sendFullBuffers(conn *connection) error {
	if s.client.armed.Load() && !s.isDue {
		s.isDue = true
		s.due.Reset(s.schedule.wait(time.Now()))
	}
	s.pending = s.client.pool.appendSealed(s.pending)
	return s.write(conn)
}

// sendAllBuffers sends all published spans, including those in buffers that are not full. Then it sends the report of
// lost spans and the requests of flushes.
func (s *sender) sendAllBuffers(conn *connection) error {
	s.due.Stop()
	s.isDue = false
	s.sealAll()
	if err := s.write(conn); err != nil {
		return err
	}
	if err := s.report(conn); err != nil {
		return err
	}
	for len(s.flushes) > 0 {
		if f := s.flushes[0]; f.ctx.Err() == nil {
			if err := conn.ask(f); err != nil {
				return err
			}
		}
		s.flushes = s.flushes[1:]
	}
	return nil
}

// settleTimeout is how long Close waits until all sent spans are settled.
const settleTimeout = 3 * time.Second

// unsettledByeTimeout is how long Close waits for the daemon to close the connection if spans are not
// settled: the daemon responds to the client's flush request first, which takes as long as a destination is
// unavailable.
const unsettledByeTimeout = time.Second

// bye sends everything that is left and a bye, and waits until the daemon has closed the connection. It returns false if
// the connection fails, so that the rest can be sent on another one.
func (s *sender) bye(conn *connection) (isOver bool) {
	if s.sendAllBuffers(conn) != nil {
		return false
	}
	isSettled, err := s.awaitSettled(conn)
	if err != nil {
		return false
	}
	if _, err := conn.socket.Write(wire.AppendBye(nil, &wire.Bye{Reason: "closed"})); err != nil {
		return false
	}
	s.sentByeOn = conn
	conn.socket.CloseWrite()
	var timeout <-chan time.Time
	if !isSettled {
		timeout = time.After(unsettledByeTimeout)
	}
	select {
	case <-conn.gone:
		if !conn.endedCleanly() {
			s.closeErr = conn.ending
		}
	case <-timeout:
	}
	return true
}

// awaitSettled sends a flush request and waits until the daemon has settled all spans, or has responded that a
// destination did not accept them. It returns false if the daemon does neither in time, and an error if the client is
// aborted. If the connection ends meanwhile, the next write fails and the spans can be sent to the next daemon.
func (s *sender) awaitSettled(conn *connection) (isSettled bool, err error) {
	if s.kept.maxBuffers == 0 || conn.unsettled() == 0 {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(s.client.aborted, settleTimeout)
	defer cancel()
	f := &flush{ctx: ctx, answer: make(chan error, 1)}
	if err := conn.ask(f); err != nil {
		return false, err
	}
	select {
	case <-f.answer:
	case <-ctx.Done():
		return false, s.client.aborted.Err()
	case <-conn.gone:
	}
	return true, s.client.aborted.Err()
}

// finish counts all spans that were not sent as lost, logs the unsettled ones, and sets the result of Close.
func (s *sender) finish() {
	s.sealAll()
	if conn := s.earlier; conn != nil {
		s.requeueUnsent(conn.sent.Load())
	}
	s.kept.drop(len(s.kept.buffers))
	if conn := s.client.last.Load(); conn != nil && conn.unsettled() > 0 {
		s.client.config.Logger.Warn("closed before spanstatsd confirmed all spans",
			slog.Uint64("unsettled", conn.unsettled()))
	}
	spans := 0
	for _, b := range s.pending {
		spans += b.spans
		s.client.lost.add(closed, b.spans)
		s.client.pool.give(b)
	}
	s.pending = s.pending[:0]
	for _, f := range s.flushes {
		f.fail(errClosed)
	}
	switch {
	case spans > 0:
		s.client.closeErr = fmt.Errorf("close client: %d spans could not be sent and are lost", spans)
	case s.closeErr != nil:
		s.client.closeErr = fmt.Errorf("close client: wait for the daemon to close the connection: %w", s.closeErr)
	}
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

// schedule decides how long a buffer that is not full waits for more spans. At the rates of a typical pod, a write costs
// more than the spans that it sends, because it wakes up both processes, and the statistics are not used before the end
// of the daemon's interval. So a buffer waits as long as possible, but is sent early enough to be counted in the current
// interval.
type schedule struct {
	age      time.Duration // maximum wait
	interval time.Duration // the daemon's interval; 0 if unknown
	lead     time.Duration // time before the end of an interval at which everything is sent
}

// newSchedule returns a schedule for a daemon with the given interval in nanoseconds, or 0 if the daemon
// has not sent one.
func newSchedule(age time.Duration, interval uint64) schedule {
	s := schedule{age: age, lead: minLead + rand.N(randomLead)}
	if interval >= uint64(minInterval) && interval <= uint64(maxInterval) {
		s.interval = time.Duration(interval)
	}
	return s
}

// wait returns how long a snapshot that is published now waits, together with those that follow. Intervals end at
// multiples of their length on the wall clock, which the daemon shares.
func (s *schedule) wait(now time.Time) time.Duration {
	if s.interval == 0 {
		return s.age
	}
	left := s.interval - time.Duration(now.UnixNano())%s.interval - s.lead
	if left <= 0 { // too late for this interval
		left += s.interval
	}
	return min(s.age, left)
}
