package export

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// answersAfter returns an answer after a delay, unless the context ends first.
func answersAfter(wait time.Duration, a Attempt) func(context.Context, *Payload) Attempt {
	return func(ctx context.Context, _ *Payload) Attempt {
		select {
		case <-time.After(wait):
			return a
		case <-ctx.Done():
			return Attempt{Outcome: OutcomeUnknown, Silent: true, Err: ctx.Err()}
		}
	}
}

// With 256 origins, and an agent that takes 200 ms per payload, a shutdown within the default grace
// period loses nothing, even right after a seal, when two cycles are queued.
func TestStop_Delivers256OriginsToSlowAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{answer: answersAfter(200*time.Millisecond, Attempt{})}, nil)
		f.Accept(testcycle.Origins(256))
		f.Accept(testcycle.Origins(256))
		grace, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		f.Close(grace)
		if s := balanced(t, f, 512); s.Flushed != 512 || s.Payloads[ResultAccepted] != 512 {
			t.Errorf("stats %+v", s)
		}
	})
}

// road records which payloads are in flight at any time.
type road struct {
	mu       sync.Mutex
	now      []*Payload
	most     int
	arrived  map[span.Origin][]uint64
	overtook bool
}

func (r *road) travel(_ context.Context, p *Payload) Attempt {
	r.mu.Lock()
	for _, other := range r.now {
		r.overtook = r.overtook || other.Origin == p.Origin
	}
	r.now = append(r.now, p)
	r.most = max(r.most, len(r.now))
	r.mu.Unlock()
	time.Sleep(time.Duration(p.sequence%7) * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = slices.DeleteFunc(r.now, func(other *Payload) bool { return other == p })
	r.arrived[p.Origin] = append(r.arrived[p.Origin], p.sequence)
	return Attempt{}
}

// Payloads of one origin arrive in the order of creation, however long each takes. Payloads of
// other origins are in flight at the same time, up to the limit.
func TestPayload_OrderWithinOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &road{arrived: map[span.Origin][]uint64{}}
		f, _ := startScripted(t, &scripted{answer: r.travel}, nil)
		const cycles, many = 5, 2 * maxDeliveries
		for range cycles {
			f.Accept(testcycle.Origins(many))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := balanced(t, f, cycles*many); s.Flushed != cycles*many || r.most != maxDeliveries ||
			r.overtook {
			t.Errorf("%d at once, two of one origin: %v, stats %+v", r.most, r.overtook, s)
		}
		for origin, sequences := range r.arrived {
			if len(sequences) != cycles || !slices.IsSorted(sequences) {
				t.Errorf("of %s came %v", origin.Service, sequences)
			}
		}
	})
}

// When the agent becomes unavailable, all payloads in flight fail. This counts as one failure: the
// pause is the shortest one, and after it a single payload is sent.
func TestPause_SimultaneousFailuresCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: answersAfter(time.Millisecond,
			Attempt{Outcome: OutcomeNotYet, Err: errDown})}
		f, _ := startScripted(t, agent, nil)
		f.Accept(testcycle.Origins(2 * maxDeliveries))
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if got := agent.tried(); got != maxDeliveries {
			t.Errorf("%d tried at first, want %d", got, maxDeliveries)
		}
		time.Sleep(shortestPause)
		synctest.Wait()
		if got := agent.tried(); got != maxDeliveries+1 {
			t.Errorf("%d tried after the shortest pause, want one more", got-maxDeliveries)
		}
		agent.answers(answersAfter(time.Millisecond, Attempt{}))
		time.Sleep(2 * longestPause)
		synctest.Wait()
		if s := balanced(t, f, 2*maxDeliveries); s.Flushed != 2*maxDeliveries ||
			agent.tried() != 3*maxDeliveries+1 {
			t.Errorf("stats %+v after %d tries", s, agent.tried())
		}
	})
}

// A payload that was in flight when the agent requested a pause does not end the pause when it is
// accepted.
func TestRetryAfter_HoldsWhileOthersArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{}
		agent.answers(func(ctx context.Context, p *Payload) Attempt {
			if p.sequence == 0 && p.tries == 0 {
				return answersAfter(time.Second,
					Attempt{Outcome: OutcomeNotYet, Err: errDown, After: 45 * time.Second})(ctx, p)
			}
			return answersAfter(2*time.Second, Attempt{})(ctx, p) // all are in flight before the first answer
		})
		f, _ := startScripted(t, agent, nil)
		f.Accept(testcycle.Origins(2 * maxDeliveries))
		time.Sleep(44 * time.Second)
		synctest.Wait()
		if s := balanced(t, f, 2*maxDeliveries); agent.tried() != maxDeliveries ||
			s.Flushed != maxDeliveries-1 {
			t.Errorf("%d tries within the pause, stats %+v", agent.tried(), s)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := balanced(t, f, 2*maxDeliveries); s.Flushed != 2*maxDeliveries {
			t.Errorf("stats %+v", s)
		}
	})
}

// A payload without a response does not delay payloads of other origins.
func TestPayload_HangingDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{answer: func(ctx context.Context, p *Payload) Attempt {
			if p.sequence == 0 {
				return answersAfter(time.Hour, Attempt{})(ctx, p)
			}
			return Attempt{}
		}}, nil)
		f.Accept(testcycle.Origins(100))
		synctest.Wait()
		if s := balanced(t, f, 100); s.Flushed != 99 || s.Pending != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

// Stats show the age of the oldest payload long before it expires, also while it is in flight.
func TestStats_AgeOfOldestPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: answersAfter(7*time.Second, Attempt{Outcome: OutcomeNotYet, Err: errDown})}
		f, _ := startScripted(t, agent, nil)
		if s := f.Stats(); s.OldestAge != 0 || s.MaxAge != DefaultRetryAge ||
			s.QueueMaxBytes != DefaultRetryBytes {
			t.Errorf("stats %+v", s)
		}
		f.Accept(testcycle.Spans(1))
		for age := 5 * time.Second; age < DefaultRetryAge; age += 5 * time.Second {
			time.Sleep(5 * time.Second)
			f.Accept(testcycle.Spans(1))
			synctest.Wait()
			if s := f.Stats(); s.OldestAge != age {
				t.Errorf("the oldest is %v old, want %v", s.OldestAge, age)
			}
		}
	})
}
