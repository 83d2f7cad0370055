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

// sender is the goroutine that owns sealed buffers and the writing side of the
// connection.
type sender struct {
	c        *Client
	pending  []*buffer   // sealed, the oldest first; it never grows
	kept     kept        // of the connection, or of the earlier one
	earlier  *connection // that the next daemon is to be asked about, if it is not nil
	asking   []*flush    // to be asked of the daemon
	reported [reasons]uint64
	backoff  backoff
	schedule schedule
	due      *time.Timer // for what the shards hold
	isDue    bool        // the timer runs, as it does while the client is armed
	since    time.Time   // when the last connection ended, or the client was opened
	isAway   bool        // the daemon is, and that was logged
	hasLeft  bool        // and so it was that it is for too long
	unread   error       // why the daemon's end was not waited for
	saidBye  *connection // on which the client said that it leaves
}

func newSender(c *Client) *sender {
	s := &sender{
		c:       c,
		pending: make([]*buffer, 0, len(c.pool.buffers)),
		kept:    kept{pool: c.pool, buffers: make([]*buffer, 0, len(c.pool.buffers))},
		backoff: backoff{most: c.config.MaxBackoff},
		due:     time.NewTimer(time.Hour),
		since:   time.Now(),
	}
	s.due.Stop()
	return s
}

// sealAll takes what the shards hold. The client is disarmed first, so whoever
// puts something into a shard after it was sealed arms it anew.
func (s *sender) sealAll() {
	s.c.armed.Store(false)
	for i := range s.c.shards {
		shard := &s.c.shards[i]
		shard.lock()
		shard.seal()
		shard.mu.Unlock()
	}
	s.pending = s.c.pool.appendSealed(s.pending)
}

// write writes what is pending.
func (s *sender) write(l *connection) (err error) {
	s.kept.release(l.settled.Load())
	done := 0
	for done < len(s.pending) && err == nil {
		if b := s.pending[done]; s.c.Features().Stats {
			err = s.writeBuffer(l, b)
		} else {
			s.c.lost.add(notWanted, b.spans)
			s.c.pool.give(b)
		}
		done++
	}
	s.pending = slices.Delete(s.pending, 0, done)
	return err
}

// writeBuffer hands over a buffer, which is then kept. One whose write fails is held: how the connection
// has ended says what becomes of the spans that were handed over.
func (s *sender) writeBuffer(l *connection, b *buffer) error {
	handed, upTo := b.spans, l.handed.Load()+uint64(b.spans)
	n, err := l.conn.Write(b.bytes())
	if err != nil {
		handed = b.taken(n)
	}
	s.c.sent.Add(uint64(handed))
	l.handed.Add(uint64(handed))
	if err != nil {
		s.kept.hold(b, upTo)
		return fmt.Errorf("write spans: %w", err)
	}
	s.kept.add(b, upTo)
	return nil
}

// report tells the daemon what was lost since the last report that it got.
func (s *sender) report(l *connection) error {
	counts := s.c.notCounted()
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

// run connects and serves, until it has said bye or there is no use in it.
func (s *sender) run() {
	defer close(s.c.done)
	defer s.c.abort()
	for isOver := false; !isOver; {
		l := s.connect()
		if l == nil {
			break
		}
		isOver = s.serve(l)
		s.part(l)
	}
	s.giveUp()
}

// connect tries until there is a connection. Once the client is closing it tries
// one last time, and only if there is something to send, or to ask.
func (s *sender) connect() *connection {
	for {
		isLast := s.c.isClosing.Load()
		if isLast {
			if s.sealAll(); len(s.pending) == 0 && s.earlier == nil {
				return nil
			}
		}
		l, err := dial(s.c, s.earlier)
		if err == nil {
			s.welcome(l)
			return l
		}
		if !s.isAway {
			s.isAway = true
			s.c.config.Logger.Warn("cannot reach spanstatsd, spans are buffered while it is tried again",
				slog.String("socket", s.c.config.Socket), slog.Any("error", err))
		}
		if isLast {
			return nil
		}
		s.refuseIfLong()
		select {
		case <-time.After(s.backoff.next()):
		case <-s.c.closing:
		}
	}
}

// refuseIfLong shuts the gate once the daemon is away for longer than it is worth waiting for.
// Spans that were buffered before stay for the daemon, but no shard goes on holding labels.
func (s *sender) refuseIfLong() {
	if s.hasLeft || time.Since(s.since) < s.c.config.MaxAway {
		return
	}
	s.hasLeft = true
	s.c.gate.set(disconnected)
	s.sealAll()
	s.c.config.Logger.Warn("spanstatsd is still away, spans are refused and counted until it is back",
		slog.String("socket", s.c.config.Socket), slog.Duration("away", time.Since(s.since)))
}

func (s *sender) welcome(l *connection) {
	s.isAway, s.hasLeft = false, false
	s.schedule = newSchedule(s.c.config.MaxAge, l.says.Interval)
	s.goBy(l)
	s.c.connects.Add(1)
	s.c.daemon.Store(&l.says.Daemon)
	s.c.config.Logger.Info("connected to spanstatsd", slog.String("socket", s.c.config.Socket),
		slog.String("daemon", l.says.Daemon))
	go l.read(s.c)
}

// part ends a connection.
func (s *sender) part(l *connection) {
	if s.saidBye != l {
		s.awaitEnd(l)
	}
	l.close()
	s.c.daemon.Store(nil)
	s.leave(l)
	s.since = time.Now()
	s.backoff.reset(time.Since(l.since))
	s.c.config.Logger.Info("disconnected from spanstatsd", slog.Any("reason", l.ending))
}

// awaitEnd reads on after a write has failed: a daemon that stops in order says bye behind
// all that it was handed, and one that died says nothing.
func (s *sender) awaitEnd(l *connection) {
	select {
	case <-l.gone:
	case <-time.After(byeLimit):
	case <-s.c.aborted.Done():
	}
}

// serve sends what comes, until the connection ends or the client has said bye.
func (s *sender) serve(l *connection) (isOver bool) {
	err := s.send(l)
	for err == nil {
		select {
		case <-l.gone:
			return false
		case <-s.c.wake:
			err = s.awake(l)
		case <-s.due.C:
			err = s.send(l)
		case f := <-s.c.flushes:
			s.asking = append(s.asking, f)
			err = s.send(l)
		case <-s.c.closing:
			return s.bye(l)
		}
	}
	return false
}

// awake sends what is full, and sees to it that the rest goes out when it is due.
func (s *sender) awake(l *connection) error {
	if s.c.armed.Load() && !s.isDue {
		s.isDue = true
		s.due.Reset(s.schedule.wait(time.Now()))
	}
	s.pending = s.c.pool.appendSealed(s.pending)
	return s.write(l)
}

// send sends everything that was published before, full or not, and what the
// daemon is to know and to be asked.
func (s *sender) send(l *connection) error {
	s.due.Stop()
	s.isDue = false
	s.sealAll()
	if err := s.write(l); err != nil {
		return err
	}
	if err := s.report(l); err != nil {
		return err
	}
	for len(s.asking) > 0 {
		if f := s.asking[0]; f.ctx.Err() == nil {
			if err := l.ask(f); err != nil {
				return err
			}
		}
		s.asking = s.asking[1:]
	}
	return nil
}

// settleLimit bounds how long Close waits for the outcome of what was handed over.
const settleLimit = 3 * time.Second

// leaveLimit bounds how long Close then waits for the daemon's end, where there is no outcome yet: the
// daemon answers the client's flush first, which may take as long as a destination is away.
const leaveLimit = time.Second

// bye sends the last of it and waits until the daemon has closed its end.
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
	s.saidBye = l
	l.conn.CloseWrite()
	var leave <-chan time.Time
	if !isSettled {
		leave = time.After(leaveLimit)
	}
	select {
	case <-l.gone:
		if !l.endedInOrder() {
			s.unread = l.ending
		}
	case <-leave:
	}
	return true
}

// awaitSettled has the daemon report, and waits until it says what has become of all that it was handed, or
// that a destination did not take it: false if it says neither in time. Should the daemon die, the next one
// can still be handed it again.
func (s *sender) awaitSettled(l *connection) (isSettled bool, err error) {
	if s.kept.most == 0 || l.unsettled() == 0 {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(s.c.aborted, settleLimit)
	defer cancel()
	f := &flush{ctx: ctx, answer: make(chan error, 1)}
	if err := l.ask(f); err != nil {
		return false, err
	}
	select {
	case <-f.answer:
	case <-ctx.Done():
		return false, s.c.aborted.Err()
	case <-l.gone: // and nothing more can be written
	}
	return true, s.c.aborted.Err()
}

// giveUp counts what is left as lost, and says what was handed over and not settled.
func (s *sender) giveUp() {
	s.sealAll()
	if l := s.earlier; l != nil {
		s.again(l.handed.Load(), l.handed.Load(), nil) // what of a buffer was not handed over
	}
	s.kept.letGo(len(s.kept.buffers))
	if l := s.c.last.Load(); l != nil && l.unsettled() > 0 {
		s.c.config.Logger.Warn("closed before spanstatsd said what became of all spans",
			slog.Uint64("unsettled", l.unsettled()))
	}
	spans := 0
	for _, b := range s.pending {
		spans += b.spans
		s.c.lost.add(closed, b.spans)
		s.c.pool.give(b)
	}
	s.pending = s.pending[:0]
	for _, f := range s.asking {
		f.fail(errClosed)
	}
	switch {
	case spans > 0:
		s.c.closeErr = fmt.Errorf("close client: %d spans could not be sent and are lost", spans)
	case s.unread != nil:
		s.c.closeErr = fmt.Errorf("close client: wait for the daemon to close its end: %w", s.unread)
	}
}

const (
	// minInterval and maxInterval bound what a daemon may say of its interval; a schedule
	// goes by no other.
	minInterval = time.Second
	maxInterval = time.Hour

	// leastLead is for what happens between a timer's end and the daemon's having counted.
	// The rest of a lead is drawn, so that not all tracers of a pod send at one moment.
	leastLead = 100 * time.Millisecond
	drawnLead = 200 * time.Millisecond
)

// schedule says how long a buffer that is not full waits for more. At the rates that pods
// have each send costs more than what is sent, because it wakes both processes, and nobody
// reads the statistics before the daemon's interval ends. So a buffer waits for as long as
// it may; but what can be with the daemon before an interval ends is there, or the agent
// would hear of it an interval later.
type schedule struct {
	age      time.Duration // the longest wait
	interval time.Duration // the daemon's; 0: unknown
	lead     time.Duration // the last of an interval is sent so long before it ends
}

// newSchedule goes by what the daemon said of its interval in nanoseconds, 0 where it said
// nothing.
func newSchedule(age time.Duration, interval uint64) schedule {
	s := schedule{age: age, lead: leastLead + rand.N(drawnLead)}
	if interval >= uint64(minInterval) && interval <= uint64(maxInterval) {
		s.interval = time.Duration(interval)
	}
	return s
}

// wait is how long what is published now waits, and with it all that comes before it is
// over. Intervals end at the multiples of their length on the wall clock, which is the
// daemon's too.
func (s *schedule) wait(now time.Time) time.Duration {
	if s.interval == 0 {
		return s.age
	}
	left := s.interval - time.Duration(now.UnixNano())%s.interval - s.lead
	if left <= 0 {
		left += s.interval // the last of this one is on its way already
	}
	return min(s.age, left)
}
