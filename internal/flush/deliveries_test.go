package flush

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// origins is a sealed cycle with one span of each of n origins.
func origins(n int) *aggregate.Sealed {
	var c cycle
	for i := range n {
		key := c.key(c.origin(span.Origin{Service: fmt.Sprint("s", i)}), span.Key{Service: "web", Operation: "op", Resource: "r"})
		c.add(0, key, time.Second, 1000, 0, 1)
	}
	return c.seal()
}

// answersAfter is an agent's answer that takes so long, unless the client leaves first.
func answersAfter(wait time.Duration, a attempt) func(context.Context, *payload) attempt {
	return func(ctx context.Context, _ *payload) attempt {
		select {
		case <-time.After(wait):
			return a
		case <-ctx.Done():
			return attempt{outcome: unknown, silent: true, err: ctx.Err()}
		}
	}
}

// 256 origins and an agent that takes 200 ms for each of their payloads: a stop within
// the default grace loses nothing, also where it comes just after a seal, so that two
// cycles wait.
func TestStopDelivers256OriginsToAnAgentOf200Milliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{answer: answersAfter(200*time.Millisecond, attempt{})}, nil)
		f.Accept(origins(256))
		f.Accept(origins(256))
		grace, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		f.Close(grace)
		if s := balanced(t, f, 512); s.Flushed != 512 || s.Payloads[ResultAccepted] != 512 {
			t.Errorf("stats %+v", s)
		}
	})
}

// road records who is under way when.
type road struct {
	mu       sync.Mutex
	now      []*payload
	most     int
	arrived  map[span.Origin][]uint64
	overtook bool
}

func (r *road) travel(_ context.Context, p *payload) attempt {
	r.mu.Lock()
	for _, other := range r.now {
		r.overtook = r.overtook || other.origin == p.origin
	}
	r.now = append(r.now, p)
	r.most = max(r.most, len(r.now))
	r.mu.Unlock()
	time.Sleep(time.Duration(p.sequence%7) * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = slices.DeleteFunc(r.now, func(other *payload) bool { return other == p })
	r.arrived[p.origin] = append(r.arrived[p.origin], p.sequence)
	return attempt{}
}

// Payloads of one origin arrive in the order in which they were made, however long
// each takes; those of others are under way meanwhile, as many as may be and not one
// more.
func TestPayloadsOfOneOriginDoNotOvertakeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &road{arrived: map[span.Origin][]uint64{}}
		f, _ := startScripted(t, &scripted{answer: r.travel}, nil)
		const cycles, many = 5, 2 * maxDeliveries
		for range cycles {
			f.Accept(origins(many))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := balanced(t, f, cycles*many); s.Flushed != cycles*many || r.most != maxDeliveries || r.overtook {
			t.Errorf("%d at once, two of one origin: %v, stats %+v", r.most, r.overtook, s)
		}
		for origin, sequences := range r.arrived {
			if len(sequences) != cycles || !slices.IsSorted(sequences) {
				t.Errorf("of %s came %v", origin.Service, sequences)
			}
		}
	})
}

// When the agent goes, all that are under way fail. That is one failure: the pause is
// the shortest, and behind it one payload alone finds out whether the agent is back.
func TestDeliveriesThatFailTogetherAreOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: answersAfter(time.Millisecond, attempt{outcome: notYet, err: errDown})}
		f, _ := startScripted(t, agent, nil)
		f.Accept(origins(2 * maxDeliveries))
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
		agent.answers(answersAfter(time.Millisecond, attempt{}))
		time.Sleep(2 * longestPause)
		synctest.Wait()
		if s := balanced(t, f, 2*maxDeliveries); s.Flushed != 2*maxDeliveries || agent.tried() != 3*maxDeliveries+1 {
			t.Errorf("stats %+v after %d tries", s, agent.tried())
		}
	})
}

// What an agent takes that has just asked to be left alone was under way already, and
// does not end the pause that it asked for.
func TestRetryAfterHoldsWhileOthersArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{}
		agent.answers(func(ctx context.Context, p *payload) attempt {
			if p.sequence == 0 && p.tries == 0 {
				return answersAfter(time.Second, attempt{outcome: notYet, err: errDown, after: 45 * time.Second})(ctx, p)
			}
			return answersAfter(2*time.Second, attempt{})(ctx, p) // all have begun by the first answer
		})
		f, _ := startScripted(t, agent, nil)
		f.Accept(origins(2 * maxDeliveries))
		time.Sleep(44 * time.Second)
		synctest.Wait()
		if s := balanced(t, f, 2*maxDeliveries); agent.tried() != maxDeliveries || s.Flushed != maxDeliveries-1 {
			t.Errorf("%d tries within the pause, stats %+v", agent.tried(), s)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := balanced(t, f, 2*maxDeliveries); s.Flushed != 2*maxDeliveries {
			t.Errorf("stats %+v", s)
		}
	})
}

// One payload that the agent hangs on does not hold up those of other origins.
func TestHangingDeliveryHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{answer: func(ctx context.Context, p *payload) attempt {
			if p.sequence == 0 {
				return answersAfter(time.Hour, attempt{})(ctx, p)
			}
			return attempt{}
		}}, nil)
		f.Accept(origins(100))
		synctest.Wait()
		if s := balanced(t, f, 100); s.Flushed != 99 || s.Held != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}
