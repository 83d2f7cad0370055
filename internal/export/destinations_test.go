package export

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// startSeveral starts a flusher with several destinations, and closes it at the end of the test.
func startSeveral(t *testing.T, cfg Config, exporters ...describer) *Flusher {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	var all []Exporter
	for _, x := range exporters {
		all = append(all, x.describe())
	}
	f, err := New(cfg, all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(t.Context()) })
	return f
}

// hangs never answers.
func hangs(ctx context.Context, _ *Payload) Attempt {
	<-ctx.Done()
	return Attempt{Outcome: OutcomeUnknown, Silent: true, Err: errNoAnswer}
}

// A destination gets everything immediately, whatever the others do: are unavailable, hang, refuse,
// or do not accept statistics. The accounting of each balances. A cycle is delivered when it has an
// outcome at each destination.
func TestDestinations_DelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := []describer{
			&scripted{name: "dead", answer: down},
			&scripted{name: "hanging", answer: hangs},
			&scripted{
				name:   "refusing",
				answer: always(Attempt{Outcome: OutcomeRefused, Err: errors.New("never")}),
			},
			&scripted{name: "unwilling", unwilling: true},
			&scripted{name: "dead and strict", answer: down, inOrder: true},
		}
		f := startSeveral(t, Config{}, append(bad, &scripted{name: "good"})...)
		all := f.Destinations()
		good, began, accepted := all[len(all)-1], time.Now(), uint64(0)
		var deliveries []*aggregate.Delivery
		for range 10 {
			for _, sealed := range []*aggregate.Sealed{testcycle.Spans(7), testcycle.Origins(40)} {
				accepted += sealed.Spans()
				deliveries = append(deliveries, sealed.Delivery)
				f.Accept(sealed)
				synctest.Wait()
				if s := balanced(t, good, accepted); s.Flushed != accepted {
					t.Fatalf("the good one has %d of %d spans", s.Flushed, accepted)
				}
				if sealed.Keys != nil {
					t.Fatal("the cycle's memory was not released")
				}
			}
			for _, d := range all {
				balanced(t, d, accepted)
			}
		}
		if !time.Now().Equal(began) {
			t.Errorf("%v have passed", time.Since(began))
		}
		if _, resolved := resolution(deliveries[0]); resolved {
			t.Error("a cycle is delivered while a destination has no outcome")
		}
		time.Sleep(2 * DefaultRetryAge)
		synctest.Wait()
		for i, want := range []Reason{Expired, "", Rejected, NotWanted, Expired} {
			if s := balanced(t, all[i], accepted); s.Pending != 0 || s.Flushed != 0 || want != "" &&
				s.Unsent[want] != accepted {
				t.Errorf("%s: stats %+v", all[i].Name(), s)
			}
		}
		for i, d := range deliveries {
			// Both deliveries fail immediately, in either order.
			err, resolved := resolution(d)
			if !resolved || err == nil || !strings.Contains(err.Error(), "unwilling") &&
				!strings.Contains(err.Error(), "refusing") {
				t.Errorf("cycle %d: delivery %v, want the first failure", i, err)
			}
		}
	})
}

// erratic is a destination whose behavior changes with each payload.
type erratic struct {
	*scripted
	mu       sync.Mutex
	random   *rand.Rand
	accepted uint64 // accepted spans
	bodies   map[*Payload]int
}

func (m *erratic) describe() Exporter { return describePush(m.scripted, m) }

func (m *erratic) Deliver(ctx context.Context, p *Payload) Attempt {
	m.mu.Lock()
	behavior, wait := m.random.IntN(8), time.Duration(m.random.IntN(3000))*time.Millisecond
	m.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return Attempt{Outcome: OutcomeNotYet, Silent: true, Err: ctx.Err()}
	}
	switch behavior {
	case 0:
		return Attempt{Outcome: OutcomeNotYet, Err: errDown, After: wait}
	case 1:
		return Attempt{Outcome: OutcomeNotYet, Silent: true, Err: errDown}
	case 2:
		return Attempt{Outcome: OutcomeRefused, Err: errDown}
	case 3:
		return Attempt{Outcome: OutcomeUnknown, Silent: true, Err: errNoAnswer}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies[p]++
	m.accepted += p.Spans
	return Attempt{}
}

// Whatever three destinations do: the accounting of each balances at any moment, each flushed payload was
// accepted exactly once, and at the end nothing is pending and every cycle has its outcome.
func TestAccounting_EachDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var destinations []*erratic
		var exporters []describer
		for i, name := range []string{"one", "other", "strict"} {
			m := &erratic{
				scripted: &scripted{name: name, inOrder: name == "strict"},
				random:   rand.New(rand.NewPCG(7, uint64(i))), bodies: map[*Payload]int{},
			}
			destinations, exporters = append(destinations, m), append(exporters, m)
		}
		f := startSeveral(t, Config{RetryAge: 20 * time.Second}, exporters...)
		var deliveries []*aggregate.Delivery
		accepted := uint64(0)
		for i := range 60 {
			sealed := testcycle.Origins(1 + i%13)
			accepted += sealed.Spans()
			deliveries = append(deliveries, sealed.Delivery)
			f.Accept(sealed)
			time.Sleep(time.Duration(i%5) * time.Second)
			synctest.Wait()
			for _, d := range f.Destinations() {
				balanced(t, d, accepted)
			}
		}
		f.Close(t.Context())
		for i, d := range f.Destinations() {
			s := balanced(t, d, accepted)
			if s.Pending != 0 || s.Flushed != destinations[i].accepted || s.Flushed == 0 || s.Flushed == accepted {
				t.Errorf("%s accepted %d spans, stats %+v", d.Name(), destinations[i].accepted, s)
			}
			for p, times := range destinations[i].bodies {
				if times > 1 {
					t.Errorf("%s accepted payload %d %d times", d.Name(), p.sequence, times)
				}
			}
		}
		for i, d := range deliveries {
			if _, resolved := resolution(d); !resolved {
				t.Errorf("cycle %d has no outcome", i)
			}
		}
	})
}

// The queue of an unavailable destination is limited: its oldest payloads are evicted. The queues
// of other destinations keep their size.
func TestQueue_BoundedPerDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &scripted{name: "slow", answer: hangs}
		f := startSeveral(t, Config{MaxPayloadBytes: MinPayloadBytes, RetryBytes: MinPayloadBytes},
			&scripted{name: "dead", answer: down}, slow, &scripted{name: "good"})
		dead, hanging, good := f.Destinations()[0], f.Destinations()[1], f.Destinations()[2]
		for range 40 {
			f.Accept(testcycle.Origins(300)) // 30 KB, so that about four of them fit in the queue
			synctest.Wait()
			for _, d := range f.Destinations() {
				if s := d.Stats(); s.QueueBytes > MinPayloadBytes || s.QueueMaxBytes != MinPayloadBytes {
					t.Fatalf("%s: %d bytes are queued", d.Name(), s.QueueBytes)
				}
			}
		}
		for _, d := range []Destination{dead, hanging} {
			if s := balanced(t, d, 12000); s.Unsent[QueueFull] < 10000 ||
				s.Unsent[QueueFull]+s.Pending != 12000 {
				t.Errorf("%s: stats %+v", d.Name(), s)
			}
		}
		if s := balanced(t, good, 12000); s.Flushed != 12000 {
			t.Errorf("the good one: stats %+v", s)
		}
	})
}

// At shutdown, each destination has the full grace period. One that hangs takes no time from the
// others, and one that answers ends immediately.
func TestClose_WaitsForSlowestDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wakes := &scripted{name: "wakes", answer: down}
		f := startSeveral(t, Config{}, &scripted{name: "hanging", answer: hangs}, wakes)
		f.Accept(testcycle.Origins(5))
		synctest.Wait()
		wakes.answers(nil)
		grace, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		closed := make(chan struct{})
		go func() { f.Close(grace); close(closed) }()
		synctest.Wait()
		if s := balanced(t, f.Destinations()[1], 5); s.Flushed != 5 || !time.Now().Equal(began) {
			t.Errorf("the recovered destination has %d of 5 spans after %v", s.Flushed, time.Since(began))
		}
		<-closed
		if s := balanced(t, f.Destinations()[0], 5); s.Unsent[Ambiguous] != 5 ||
			time.Since(began) != 3*time.Second {
			t.Errorf("the hanging destination: stats %+v after %v", s, time.Since(began))
		}
	})
}

// A destination that is InOrder gets payloads in the order of creation, however often one fails.
func TestInOrder_PayloadsArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived []uint64
		strict := &scripted{name: "strict", inOrder: true}
		strict.answers(func(_ context.Context, p *Payload) Attempt {
			if p.sequence%3 == 1 && p.tries < 2 {
				return Attempt{Outcome: OutcomeNotYet, Err: errDown}
			}
			arrived = append(arrived, p.sequence)
			return Attempt{}
		})
		f := startSeveral(t, Config{RetryAge: time.Hour}, strict)
		for range 4 {
			f.Accept(testcycle.Origins(5))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(arrived) != 20 {
			t.Fatalf("%d payloads arrived", len(arrived))
		}
		for i, sequence := range arrived {
			if sequence != uint64(i) {
				t.Fatalf("they arrived in the order %v", arrived)
			}
		}
	})
}
