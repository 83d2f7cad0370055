package export

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// graphing is an exporter of deltas and of a service graph.
type graphing struct {
	*scripted
	isCumulative bool
}

func (g graphing) describe() Exporter {
	x := describePush(g.scripted, g)
	x.InOrder, x.Cumulative = true, g.isCumulative
	x.GraphMemory = func(totals.Limits) int { return 0 }
	return x
}

// Encode adds a payload of the graph to those of the deltas.
func (g graphing) Encode(c *Cycle, emit func(*Payload)) Encoded {
	encoded := g.scripted.Encode(c, emit)
	emit(&Payload{Body: []byte("graph"), IsGraph: true})
	return encoded
}

// While the destination is unavailable, each payload of deltas is queued, but only the last one of the service graph,
// which contains the requests of the others. Clients do not wait for the replaced ones.
func TestGraph_NewerReplacesOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		destination := graphing{&scripted{answer: down}, false}
		f, _ := startScripted(t, destination, nil)
		cycle := testcycle.Spans(5)
		const cycles = 8 // the longest pause after them ends before the first payload expires
		for n := range cycles {
			f.Accept(cycle)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if s := balanced(t, f, uint64(5*(n+1))); s.QueuePayloads != n+1+1 {
				t.Fatalf("after %d cycles %d payloads are queued", n+1, s.QueuePayloads)
			}
			cycle = testcycle.Spans(5)
		}
		destination.answers(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		s := balanced(t, f, 5*cycles)
		if s.Flushed != 5*cycles || s.Payloads[ResultAccepted] != cycles+1 || s.Payloads[ResultSuperseded] != cycles-1 {
			t.Errorf("%+v", s)
		}
		var idle testcycle.Cycle
		sealed := idle.Seal()
		f.Accept(sealed)
		synctest.Wait()
		if err, isResolved := resolution(sealed.Delivery); err != nil || !isResolved {
			t.Errorf("delivery of a cycle without spans: %v, resolved %v", err, isResolved)
		}
		if s := f.Stats(); s.Payloads[ResultAccepted] != cycles+2 {
			t.Errorf("%d payloads are accepted, want %d: edges are sent without new requests",
				s.Payloads[ResultAccepted], cycles+2)
		}
	})
}

// A refused payload of the service graph loses no span, and the log does not say so. The spans are settled, also if
// those of other payloads are running totals, so that clients do not keep them.
func TestGraph_RefusedLosesNothing(t *testing.T) {
	for _, isCumulative := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			destination := graphing{&scripted{}, isCumulative}
			f, log := startScripted(t, destination, nil)
			destination.answers(func(_ context.Context, p *Payload) Attempt {
				if p.IsGraph {
					return Attempt{Outcome: OutcomeRefused, Err: errDown}
				}
				return Attempt{Outcome: OutcomeAccepted}
			})
			isSettled := false
			sealed := testcycle.Spans(5)
			sealed.Delivery = aggregate.NewWatchedDelivery(func(bool) {}, func() { isSettled = true })
			f.Accept(sealed)
			time.Sleep(time.Minute)
			synctest.Wait()
			s := balanced(t, f, 5)
			if s.Flushed != 5 || s.Payloads[ResultRejected] != 1 || !isSettled {
				t.Errorf("cumulative %v, settled %v: %+v", isCumulative, isSettled, s)
			}
			if text := log.String(); strings.Contains(text, "lost") || !strings.Contains(text, "the next payload includes") {
				t.Errorf("the log is\n%s", text)
			}
		})
	}
}
