package client

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// sender is the goroutine that owns sealed buffers and writes to the connection.
type sender struct {
	client     *Client
	pending    []*buffer   // sealed buffers, oldest first; never reallocated
	kept       keptBuffers // sent on the current connection, or on earlier
	earlier    *connection // connection to ask the next daemon about; nil if there is none
	flushes    []*flush    // flushes to request from the daemon
	reported   [reasons]uint64
	backoff    backoff
	schedule   schedule
	due        *time.Timer // for the content of the shards
	isDue      bool        // the timer is running; true while the client is armed
	since      time.Time   // end of the last connection, or start of the client
	isAway     bool        // it was logged that the daemon is unreachable
	isRefusing bool        // it was logged that it has been unreachable for too long
	waitErr    error       // reason why the sender could not wait for the daemon to close its end
	byeConn    *connection // connection on which the client has sent bye
}

// newSender returns the sender of a client. run runs it.
func newSender(c *Client) *sender {
	s := &sender{
		client:  c,
		pending: make([]*buffer, 0, len(c.pool.buffers)),
		kept:    keptBuffers{pool: c.pool, buffers: make([]*buffer, 0, len(c.pool.buffers))},
		backoff: backoff{maxPause: c.config.MaxBackoff},
		due:     time.NewTimer(time.Hour),
		since:   time.Now(),
	}
	s.due.Stop()
	return s
}

// sealAll seals the buffers of all shards and appends them to s.pending. It resets armed first, so
// that a publisher that adds to a shard after it was sealed sets armed again and wakes the sender.
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

// write sends the pending buffers.
func (s *sender) write(l *connection) (err error) {
	s.kept.release(l.settled.Load())
	done := 0
	for done < len(s.pending) && err == nil {
		if b := s.pending[done]; s.client.Features().Stats {
			err = s.writeBuffer(l, b)
		} else {
			s.client.lost.add(notWanted, b.spans)
			s.client.pool.give(b)
		}
		done++
	}
	s.pending = slices.Delete(s.pending, 0, done)
	return err
}

// writeBuffer sends a buffer and keeps it until it is settled. If the write fails, it keeps the
// buffer as well: how the connection has ended determines what happens to the spans sent so far.
func (s *sender) writeBuffer(l *connection, b *buffer) error {
	sent, upTo := b.spans, l.sent.Load()+uint64(b.spans)
	n, err := l.conn.Write(b.bytes())
	if err != nil {
		sent = b.sentSpans(n)
	}
	s.client.sent.Add(uint64(sent))
	l.sent.Add(uint64(sent))
	if err != nil {
		s.kept.hold(b, upTo)
		return fmt.Errorf("write spans: %w", err)
	}
	s.kept.add(b, upTo)
	return nil
}

// reportLosses sends the numbers of lost spans since the last successful report.
func (s *sender) reportLosses(l *connection) error {
	counts := s.client.lostAndRefused()
	if counts == s.reported {
		return nil
	}
	lost := wire.Lost{}
	for i, n := range counts {
		if n > s.reported[i] {
			lost[reasonNames[i]] = n - s.reported[i]
		}
	}
	if _, err := l.conn.Write(wire.AppendLost(nil, lost)); err != nil {
		return fmt.Errorf("write lost: %w", err)
	}
	s.reported = counts
	return nil
}

// run connects and sends repeatedly, until the client has sent bye or connecting is pointless.
func (s *sender) run() {
	defer close(s.client.done)
	defer s.client.abort()
	for isOver := false; !isOver; {
		l := s.connect()
		if l == nil {
			break
		}
		isOver = s.serve(l)
		s.disconnect(l)
	}
	s.giveUp()
}

// connect tries to connect until it succeeds. Once the client is closing it makes one last attempt,
// and only if there is something to send or to ask.
func (s *sender) connect() *connection {
	for {
		isLast := s.client.isClosing.Load()
		if isLast {
			if s.sealAll(); len(s.pending) == 0 && s.earlier == nil {
				return nil
			}
		}
		l, err := dial(s.client, s.earlier)
		if err == nil {
			s.welcome(l)
			return l
		}
		if !s.isAway {
			s.isAway = true
			s.client.config.Logger.Warn("cannot reach spanstatsd, spans are buffered while it is tried again",
				slog.String("socket", s.client.config.Socket), slog.Any("error", err))
		}
		if isLast {
			return nil
		}
		s.refuseIfLong()
		select {
		case <-time.After(s.backoff.next()):
		case <-s.client.closing:
		}
	}
}

// refuseIfLong closes the gate if the daemon has been unreachable for longer than Config.MaxAway.
// Spans buffered before are kept, but shards release their references to labels.
func (s *sender) refuseIfLong() {
	if s.isRefusing || time.Since(s.since) < s.client.config.MaxAway {
		return
	}
	s.isRefusing = true
	s.client.gate.set(disconnected)
	s.sealAll()
	s.client.config.Logger.Warn("spanstatsd is still away, spans are refused and counted until it is back",
		slog.String("socket", s.client.config.Socket), slog.Duration("away", time.Since(s.since)))
}

// welcome starts the use of a new connection: it applies outcomes of an earlier one, and starts the
// reader.
func (s *sender) welcome(l *connection) {
	s.isAway, s.isRefusing = false, false
	s.schedule = newSchedule(s.client.config.MaxAge, l.says.Interval)
	s.applyOutcomes(l)
	s.client.connects.Add(1)
	s.client.daemon.Store(&l.says.Daemon)
	s.client.config.Logger.Info("connected to spanstatsd", slog.String("socket", s.client.config.Socket),
		slog.String("daemon", l.says.Daemon))
	go l.read(s.client)
}

// disconnect closes a connection and handles its unsettled spans.
func (s *sender) disconnect(l *connection) {
	if s.byeConn != l {
		s.awaitEnd(l)
	}
	l.close()
	s.client.daemon.Store(nil)
	s.leave(l)
	s.since = time.Now()
	s.backoff.reset(time.Since(l.since))
	s.client.config.Logger.Info("disconnected from spanstatsd", slog.Any("reason", l.endErr))
}

// awaitEnd waits for the end of the connection after a failed write: a daemon that shuts down
// cleanly sends bye after everything that it has received, and one that crashed sends nothing.
func (s *sender) awaitEnd(l *connection) {
	select {
	case <-l.gone:
	case <-time.After(byeLimit):
	case <-s.client.aborted.Done():
	}
}

// serve sends published spans until the connection ends or the client has sent bye.
func (s *sender) serve(l *connection) (isOver bool) {
	err := s.send(l)
	for err == nil {
		select {
		case <-l.gone:
			return false
		case <-s.client.wake:
			err = s.awake(l)
		case <-s.due.C:
			err = s.send(l)
		case f := <-s.client.flushes:
			s.flushes = append(s.flushes, f)
			err = s.send(l)
		case <-s.client.closing:
			return s.bye(l)
		}
	}
	return false
}

// awake sends full buffers, and starts the timer for the others.
func (s *sender) awake(l *connection) error {
	if s.client.armed.Load() && !s.isDue {
		s.isDue = true
		s.due.Reset(s.schedule.wait(time.Now()))
	}
	s.pending = s.client.pool.appendSealed(s.pending)
	return s.write(l)
}

// send sends everything published before, in full buffers or not, the losses, and flush requests.
func (s *sender) send(l *connection) error {
	s.due.Stop()
	s.isDue = false
	s.sealAll()
	if err := s.write(l); err != nil {
		return err
	}
	if err := s.reportLosses(l); err != nil {
		return err
	}
	for len(s.flushes) > 0 {
		if f := s.flushes[0]; f.ctx.Err() == nil {
			if err := l.ask(f); err != nil {
				return err
			}
		}
		s.flushes = s.flushes[1:]
	}
	return nil
}

// settleLimit limits how long Close waits for the outcome of the spans sent.
const settleLimit = 3 * time.Second

// leaveLimit limits how long Close then waits for the daemon to close its end if spans are
// unsettled. The daemon first answers the client's flush, which takes as long as a destination is
// unavailable.
const leaveLimit = time.Second

// bye sends the rest, waits for its settlement, sends bye, and waits until the daemon has closed
// its end.
func (s *sender) bye(l *connection) (isOver bool) {
	if s.send(l) != nil {
		return false
	}
	isSettled, err := s.awaitSettled(l)
	if err != nil {
		return false
	}
	if _, err := l.conn.Write(wire.AppendBye(nil, &wire.Bye{Reason: "closed"})); err != nil {
		return false
	}
	s.byeConn = l
	l.conn.CloseWrite()
	var leave <-chan time.Time
	if !isSettled {
		leave = time.After(leaveLimit)
	}
	select {
	case <-l.gone:
		if !l.endedInOrder() {
			s.waitErr = l.endErr
		}
	case <-leave:
	}
	return true
}

// awaitSettled requests a flush, and waits until all spans sent are settled or a destination has
// rejected them. It reports false if neither happens in time. Until then, spans can be sent again
// if the daemon crashes.
func (s *sender) awaitSettled(l *connection) (isSettled bool, err error) {
	if s.kept.maxBuffers == 0 || l.unsettled() == 0 {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(s.client.aborted, settleLimit)
	defer cancel()
	f := &flush{ctx: ctx, answer: make(chan error, 1)}
	if err := l.ask(f); err != nil {
		return false, err
	}
	select {
	case <-f.answer:
	case <-ctx.Done():
		return false, s.client.aborted.Err()
	case <-l.gone:
	}
	return true, s.client.aborted.Err()
}

// giveUp counts the remaining spans as lost, and logs unsettled ones.
func (s *sender) giveUp() {
	s.sealAll()
	if l := s.earlier; l != nil {
		s.requeue(l.sent.Load(), l.sent.Load(), nil) // spans of a partly sent buffer
	}
	s.kept.drop(len(s.kept.buffers))
	if l := s.client.last.Load(); l != nil && l.unsettled() > 0 {
		s.client.config.Logger.Warn("closed before spanstatsd said what became of all spans",
			slog.Uint64("unsettled", l.unsettled()))
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
	case s.waitErr != nil:
		s.client.closeErr = fmt.Errorf("close client: wait for the daemon to close its end: %w", s.waitErr)
	}
}

const (
	// Intervals of a daemon outside these limits are ignored.
	minInterval = time.Second
	maxInterval = time.Hour

	// A schedule's lead is at least leastLead, the time from a timer until the daemon has counted the
	// spans, plus a random part, so that not all tracers of a pod send at the same moment.
	leastLead = 100 * time.Millisecond
	drawnLead = 200 * time.Millisecond
)

// schedule decides how long a buffer that is not full waits for more spans. At typical rates,
// sending costs more than encoding, because it wakes both processes, and statistics are not needed
// before the daemon's interval ends. So a buffer waits as long as possible; but spans that can
// reach the daemon before an interval ends do so, otherwise they would reach the agent an interval
// later.
type schedule struct {
	age      time.Duration // maximum wait
	interval time.Duration // interval of the daemon; 0 if unknown
	lead     time.Duration // time before the end of an interval at which the last spans are sent
}

// newSchedule returns a schedule for a daemon's interval in nanoseconds; 0 if unknown.
func newSchedule(age time.Duration, interval uint64) schedule {
	s := schedule{age: age, lead: leastLead + rand.N(drawnLead)}
	if interval >= uint64(minInterval) && interval <= uint64(maxInterval) {
		s.interval = time.Duration(interval)
	}
	return s
}

// wait returns how long a span published now waits, with everything published until then. Intervals
// end at multiples of their length on the wall clock, in both processes.
func (s *schedule) wait(now time.Time) time.Duration {
	if s.interval == 0 {
		return s.age
	}
	remaining := s.interval - time.Duration(now.UnixNano())%s.interval - s.lead
	if remaining <= 0 {
		remaining += s.interval // the last spans of this interval have been sent
	}
	return min(s.age, remaining)
}
