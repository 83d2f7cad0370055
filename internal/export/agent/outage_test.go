package agent

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// outage is an agent that is unavailable for a while, and counts the payloads that it accepts.
type outage struct {
	*scripted
	t        *testing.T
	mu       sync.Mutex
	isDown   bool
	accepted map[uint64]int // by sequence number, how often it was accepted
}

func (o *outage) set(isDown bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.isDown = isDown
}

func (o *outage) deliver(ctx context.Context, p *export.Payload) post.Answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isDown {
		return down(ctx, p)
	}
	o.accepted[sequence(o.t, p)]++
	return post.Answer{}
}

func (o *outage) readInfo(ctx context.Context) (agentInfo, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isDown {
		return agentInfo{}, errDown
	}
	return o.scripted.readInfo(ctx)
}

// The agent is unavailable for three minutes, which is longer than the retry age, with a cycle
// every ten seconds. The oldest payloads expire and are counted, and no seal is delayed. When the
// agent has recovered, all younger payloads arrive once, the oldest first.
func TestAgent_UnavailableForThreeMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &outage{scripted: &scripted{}, t: t, accepted: map[uint64]int{}}
		f, log := startScripted(t, agent, nil)
		const spans, cycles, outageCycles = 10, 60, 18
		var deliveries []*aggregate.Delivery
		for i := range cycles {
			agent.set(i >= 12 && i < 12+outageCycles)
			sealed, began := testcycle.Spans(spans), time.Now()
			deliveries = append(deliveries, sealed.Delivery)
			f.Accept(sealed)
			if time.Since(began) != 0 {
				t.Errorf("cycle %d waited for the agent", i)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			s := balanced(t, f, uint64(i+1)*spans)
			// The payloads of the retry age, including the cycle at each end.
			if most := int(export.DefaultRetryAge/(10*time.Second)) + 1; s.QueuePayloads > most ||
				s.Reachable == agent.isDown {
				t.Errorf("cycle %d: %d payloads are queued, reachable %v", i, s.QueuePayloads, s.Reachable)
			}
		}
		s := balanced(t, f, cycles*spans)
		lost := s.Unsent[export.Expired]
		// The retry age is twelve cycles, and the daemon detects the agent within one.
		if lost < (outageCycles-12)*spans || lost > (outageCycles-10)*spans || s.Pending != 0 ||
			s.Flushed != cycles*spans-lost || s.Payloads[export.ResultGivenUp] != lost/spans {
			t.Errorf("stats %+v", s)
		}
		for i, d := range deliveries {
			err, resolved := resolution(d)
			isLost := i >= 12 && uint64(i) < 12+lost/spans // the oldest ones of the outage
			if !resolved || (err != nil) != isLost ||
				agent.accepted[uint64(i)] != map[bool]int{false: 1}[isLost] {
				t.Errorf("cycle %d: %v, accepted %d times", i, err, agent.accepted[uint64(i)])
			}
		}
		for _, line := range []string{"is unreachable", "dropping payloads", "accepts payloads again"} {
			if strings.Count(log.String(), line) != 1 {
				t.Errorf("%q is not logged once:\n%s", line, log)
			}
		}
	})
}
