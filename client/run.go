package client

import (
	"log/slog"
	"time"
)

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
