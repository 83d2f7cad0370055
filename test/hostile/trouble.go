package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// trouble makes the fake backends misbehave, and daemons pause and restart, one event after another.
func (s *soak) trouble(ctx context.Context, episode time.Duration) error {
	first := rand.IntN(len(faults))
	for turn := 0; ctx.Err() == nil; turn++ {
		var err error
		round := turn / 4
		d := s.daemons[round%len(s.daemons)]
		switch turn % 4 {
		case 0: // both backends, each with the next fault of its list
			err = s.misbehave(ctx, faultOf(first+round), faultOf(first+2*round), episode)
		case 1:
			err = s.misbehave(ctx, nil, faultOf(first+2*round+1), episode)
		case 2:
			d.signal(syscall.SIGSTOP)
			pause(ctx, episode/2)
			d.signal(syscall.SIGCONT)
			pause(ctx, episode)
		default:
			err = s.restart(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func faultOf(turn int) *fault { return &faults[turn%len(faults)] }

// misbehave starts faults of the agent and the destination for d, and then waits for the same time.
func (s *soak) misbehave(ctx context.Context, agent, behind *fault, d time.Duration) error {
	s.mu.Lock()
	s.calm = time.Time{}
	for _, f := range []*fault{agent, behind} {
		if f != nil {
			s.kinds[f.name] = true
		}
	}
	s.mu.Unlock()
	fmt.Fprintf(s.log, "the agent %s, the destination %s\n", agent, behind)
	err := errors.Join(s.agent.misbehave(agent), s.behind.misbehave(behind))
	pause(ctx, d)
	err = errors.Join(err, s.agent.misbehave(nil), s.behind.misbehave(nil))
	s.mu.Lock()
	s.calm = time.Now()
	s.mu.Unlock()
	pause(ctx, d)
	return err
}

// restart gracefully stops a daemon and starts the next one, once no request of a sender is in flight.
func (s *soak) restart(ctx context.Context, d *daemon) error {
	s.hurry.Store(false)
	defer s.hurry.Store(true)
	if !s.settles(ctx, time.Now()) {
		return nil
	}
	if err := d.stop(); err != nil {
		s.noticed("%v", err)
	}
	return d.start()
}

// settles waits until a request of each sender has completed after the given time.
func (s *soak) settles(ctx context.Context, since time.Time) bool {
	for deadline := time.Now().Add(time.Minute); ; pause(ctx, 20*time.Millisecond) {
		var waits []string
		s.ledger.change(func() {
			for name, a := range s.ledger.senders {
				if a.last.Before(since) {
					waits = append(waits, name)
				}
			}
		})
		switch {
		case len(waits) == 0:
			return true
		case ctx.Err() != nil:
			return false
		case time.Now().After(deadline):
			slices.Sort(waits)
			s.noticed("no request had its end in a minute of nobody misbehaving: %v", waits)
			return false
		}
	}
}
