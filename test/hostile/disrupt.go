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

// disrupt makes the fake backends misbehave, and daemons pause and restart, one event after another.
func (s *soak) disrupt(ctx context.Context, episode time.Duration) error {
	first := rand.IntN(len(faults))
	for step := 0; ctx.Err() == nil; step++ {
		var err error
		round := step / 4
		d := s.daemons[round%len(s.daemons)]
		switch step % 4 {
		case 0: // both backends, each with the next fault of its list
			err = s.injectFaults(ctx, faultOf(first+round), faultOf(first+2*round), episode)
		case 1:
			err = s.injectFaults(ctx, nil, faultOf(first+2*round+1), episode)
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

func faultOf(step int) *fault { return &faults[step%len(faults)] }

// injectFaults starts faults of the agent and the destination for d, and then waits for the same time.
func (s *soak) injectFaults(ctx context.Context, agent, destination *fault, d time.Duration) error {
	s.mu.Lock()
	s.healthySince = time.Time{}
	for _, f := range []*fault{agent, destination} {
		if f != nil {
			s.faultKinds[f.name] = true
		}
	}
	s.mu.Unlock()
	fmt.Fprintf(s.log, "the agent %s, the destination %s\n", agent, destination)
	err := errors.Join(s.agent.setFault(agent), s.destination.setFault(destination))
	pause(ctx, d)
	err = errors.Join(err, s.agent.setFault(nil), s.destination.setFault(nil))
	s.mu.Lock()
	s.healthySince = time.Now()
	s.mu.Unlock()
	pause(ctx, d)
	return err
}

// restart gracefully stops a daemon and starts the next one, once no request of a sender is in flight.
func (s *soak) restart(ctx context.Context, d *daemon) error {
	s.abandons.Store(false)
	defer s.abandons.Store(true)
	if !s.waitForCompletion(ctx, time.Now()) {
		return nil
	}
	if err := d.stop(); err != nil {
		s.violation("%v", err)
	}
	return d.start()
}

// waitForCompletion waits until a request of each sender has completed after the given time.
func (s *soak) waitForCompletion(ctx context.Context, since time.Time) bool {
	for deadline := time.Now().Add(time.Minute); ; pause(ctx, 20*time.Millisecond) {
		var pending []string
		s.ledger.change(func() {
			for name, a := range s.ledger.senders {
				if a.last.Before(since) {
					pending = append(pending, name)
				}
			}
		})
		switch {
		case len(pending) == 0:
			return true
		case ctx.Err() != nil:
			return false
		case time.Now().After(deadline):
			slices.Sort(pending)
			s.violation("no request completed within a minute without faults: %v", pending)
			return false
		}
	}
}
