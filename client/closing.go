package client

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

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
