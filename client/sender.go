package client

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// sender is the goroutine that owns sealed buffers and the writing side of the
// connection.
type sender struct {
	c                   *Client
	pending             []*buffer // sealed, the oldest first; it never grows
	asking              []*flush  // to be asked of the daemon
	reported            [reasons]uint64
	reportedUnconfirmed uint64
	backoff             backoff
	schedule            schedule
	due                 *time.Timer // for what the shards hold
	isDue               bool        // the timer runs, as it does while the client is armed
	since               time.Time   // when the last connection ended, or the client was opened
	isAway              bool        // the daemon is, and that was logged
	hasLeft             bool        // and so it was that it is for too long
	unread              error       // why the daemon's end was not waited for
	saidBye             *connection // on which the client said that it leaves
}

func newSender(c *Client) *sender {
	s := &sender{
		c:       c,
		pending: make([]*buffer, 0, len(c.pool.buffers)),
		backoff: backoff{most: c.config.MaxBackoff},
		due:     time.NewTimer(time.Hour),
		since:   time.Now(),
	}
	s.due.Stop()
	return s
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
// one last time, and only if there is something to send.
func (s *sender) connect() *connection {
	for {
		isLast := s.c.isClosing.Load()
		if isLast {
			if s.sealAll(); len(s.pending) == 0 {
				return nil
			}
		}
		l, err := dial(s.c)
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
	s.schedule = newSchedule(s.c.config.MaxAge, l.interval)
	s.c.connects.Add(1)
	s.c.daemon.Store(&l.daemon)
	s.c.config.Logger.Info("connected to spanstatsd", slog.String("socket", s.c.config.Socket),
		slog.String("daemon", l.daemon))
	go l.read(s.c)
}

// part ends a connection. Where the daemon has died, what it took with it is counted.
func (s *sender) part(l *connection) {
	s.awaitEnd(l)
	l.close()
	s.c.daemon.Store(nil)
	if lost := l.unconfirmed(); lost > 0 && s.saidBye != l {
		s.c.unconfirmed.Add(lost)
		s.c.config.Logger.Warn("spanstatsd died, and may have taken spans with it",
			slog.Uint64("at_most", lost))
	}
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
	case <-s.c.closing:
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

// write writes what is pending. A buffer whose write fails stays, less the messages that were
// handed over.
func (s *sender) write(l *connection) error {
	done := 0
	defer func() { s.pending = s.pending[:copy(s.pending, s.pending[done:])] }()
	for _, b := range s.pending {
		if !s.c.Features().Stats {
			s.c.lost.add(notWanted, b.spans)
		} else if err := s.writeBuffer(l, b); err != nil {
			return err
		}
		s.c.pool.give(b)
		done++
	}
	return nil
}

func (s *sender) writeBuffer(l *connection, b *buffer) error {
	n, err := l.conn.Write(b.bytes())
	handed := b.spans
	if err != nil {
		handed = b.handOver(n)
		err = fmt.Errorf("write spans: %w", err)
	}
	s.c.sent.Add(uint64(handed))
	l.handed += uint64(handed)
	return err
}

// report tells the daemon what was lost since the last report that it got.
func (s *sender) report(l *connection) error {
	counts, unconfirmed := s.c.notCounted(), s.c.unconfirmed.Load()
	if counts == s.reported && unconfirmed == s.reportedUnconfirmed {
		return nil
	}
	lost := wire.Lost{}
	if n := unconfirmed - s.reportedUnconfirmed; n > 0 {
		lost[ReasonDaemonDied] = n
	}
	for i, n := range counts {
		if n > s.reported[i] {
			lost[reasonNames[i]] = n - s.reported[i]
		}
	}
	if _, err := l.conn.Write(wire.AppendLost(nil, lost)); err != nil {
		return fmt.Errorf("write lost: %w", err)
	}
	s.reported, s.reportedUnconfirmed = counts, unconfirmed
	return nil
}

// bye sends the last of it and waits until the daemon has closed its end.
func (s *sender) bye(l *connection) (isOver bool) {
	if s.send(l) != nil {
		return false
	}
	if _, err := l.conn.Write(wire.AppendBye(nil, &wire.Bye{Reason: "closed"})); err != nil {
		return false
	}
	s.saidBye = l
	l.conn.CloseWrite()
	<-l.gone
	if !l.endedInOrder() {
		s.unread = l.ending
	}
	return true
}

// giveUp counts what is left as lost.
func (s *sender) giveUp() {
	s.sealAll()
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
