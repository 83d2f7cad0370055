package client

import (
	"fmt"
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
