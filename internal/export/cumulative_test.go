package export

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// summing is an exporter of running totals: the number of spans per service. Its destination is a
// map.
type summing struct {
	*scripted
	services []string // services in the order of their first span
	spans    map[string]uint64
	settled  map[string]uint64 // number of settled spans
	bytes    int               // length of a payload

	reading sync.Mutex
	reader  map[string]uint64 // totals that the destination has accepted
}

func newSumming(answer func(context.Context, *Payload) Attempt) *summing {
	return &summing{
		scripted: &scripted{name: "sums", inOrder: true, answer: answer},
		spans:    map[string]uint64{}, settled: map[string]uint64{}, reader: map[string]uint64{}, bytes: 100,
	}
}

func (s *summing) describe() Exporter {
	x := describePush(s.scripted, s)
	x.Cumulative = true
	return x
}

// total is the total of a service in a payload.
func total(p *Payload) (service string, spans uint64) {
	service, number, _ := strings.Cut(strings.TrimRight(string(p.Body), "."), "=")
	spans, _ = strconv.ParseUint(number, 10, 64)
	return service, spans
}

// Encode makes one payload per service that ever had spans.
func (s *summing) Encode(c *Cycle, emit func(*Payload)) Encoded {
	if c.FirstUndelivered == c.Number {
		s.settled = maps.Clone(s.spans)
	}
	for i := range c.Rows {
		name := c.Origins[c.Rows[i].Origin()].Service
		if _, known := s.spans[name]; !known {
			s.services = append(s.services, name)
		}
		s.spans[name] += c.Rows[i].Spans
	}
	for _, name := range s.services {
		body := fmt.Sprintf("%s=%d", name, s.spans[name])
		emit(&Payload{
			Body:        []byte(body + strings.Repeat(".", s.bytes-len(body))),
			Undelivered: []uint64{s.spans[name] - s.settled[name]},
		})
	}
	return Encoded{Totals: TotalsStats{Series: len(s.services)}}
}

// Deliver adds an accepted payload to the reader.
func (s *summing) Deliver(ctx context.Context, p *Payload) Attempt {
	a := s.scripted.Deliver(ctx, p)
	if a.Outcome == OutcomeAccepted {
		s.reading.Lock()
		defer s.reading.Unlock()
		service, spans := total(p)
		s.reader[service] = max(s.reader[service], spans)
	}
	return a
}

func (s *summing) received() (spans uint64) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for _, n := range s.reader {
		spans += n
	}
	return spans
}

// Cycles without spans are sent only to destinations of running totals, because a receiver forgets
// series that are not sent.
func TestTotals_GetIdleCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sums, deltas := newSumming(nil), &scripted{}
		f := startSeveral(t, Config{}, sums, deltas)
		for range 3 {
			var idle testcycle.Cycle
			sealed := idle.Seal()
			f.Accept(testcycle.Spans(5))
			synctest.Wait()
			f.Accept(sealed)
			synctest.Wait()
			if err, resolved := resolution(sealed.Delivery); err != nil || !resolved || sealed.Keys != nil {
				t.Errorf("an idle cycle: delivery %v, resolved %v, keys %v", err, resolved, sealed.Keys)
			}
		}
		if sums.tried() != 6 || deltas.tried() != 3 || len(deltas.limits) != 3 {
			t.Errorf("%d payloads of totals and %d of deltas, encoded %d times, of three cycles with spans and three without", sums.tried(), deltas.tried(), len(deltas.limits))
		}
		if busiest := f.Busiest(); busiest.Spans != 5 {
			t.Errorf("the busiest are those of a cycle with %d spans", busiest.Spans)
		}
		for _, d := range f.Destinations() {
			if s := balanced(t, d, 15); s.Flushed != 15 {
				t.Errorf("%s: %+v", d.Name(), s)
			}
		}
	})
}

// While the destination is unavailable, only one copy of all totals is queued, whatever the number
// of cycles. After it has recovered, it gets every span.
func TestTotals_NewerReplaceOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sums := newSumming(down)
		f, _ := startScripted(t, sums, nil)
		for cycle := range 50 {
			f.Accept(testcycle.Origins(7))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if s := balanced(t, f, uint64(7*(cycle+1))); s.QueuePayloads > 7 ||
				s.Pending != uint64(7*(cycle+1)) {
				t.Fatalf("after %d cycles %+v", cycle+1, s)
			}
		}
		if s := f.Stats(); s.Payloads[ResultSuperseded] != 49*7 || s.Totals.Series != 7 ||
			s.OldestAge < 490*time.Second {
			t.Errorf("%+v", s)
		}
		sums.answers(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := balanced(t, f, 350); s.Flushed != 350 || sums.received() != 350 || s.OldestAge != 0 {
			t.Errorf("%+v, and the receiver counted %d", s, sums.received())
		}
	})
}

// Spans in a refused payload are held until the next payload is accepted. Waiting clients get the
// error immediately. The cycle is settled only after the delivery.
func TestTotals_RefusedSpansComeWithNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("out of order")
		sums := newSumming(always(Attempt{Outcome: OutcomeRefused, Err: refused}))
		f, log := startScripted(t, sums, nil)
		first, second := testcycle.Spans(5), testcycle.Spans(3)
		f.Accept(first)
		synctest.Wait()
		if s := balanced(t, f, 5); s.Pending != 5 || s.Payloads[ResultRejected] != 1 {
			t.Errorf("%+v", s)
		}
		if err, _ := resolution(first.Delivery); !errors.Is(err, refused) {
			t.Errorf("delivery %v", err)
		}
		if !strings.Contains(log.String(), "the next payload includes") || strings.Contains(log.String(), "lost") {
			t.Errorf("log:\n%s", log)
		}
		sums.answers(nil)
		f.Accept(second)
		synctest.Wait()
		if s := balanced(t, f, 8); s.Flushed != 8 {
			t.Errorf("%+v", s)
		}
		if err, resolved := resolution(second.Delivery); err != nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
	})
}

// Only the spans in a refused payload are held. They are delivered with the next accepted payload.
// The cycle is not settled earlier.
func TestTotals_RefusedPartIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sums := newSumming(func(_ context.Context, p *Payload) Attempt {
			if service, _ := total(p); service == "s1" {
				return Attempt{Outcome: OutcomeRefused, Err: errDown}
			}
			return Attempt{}
		})
		f, _ := startScripted(t, sums, nil)
		var all []*testcycle.Reports
		for cycle := range uint64(3) {
			sealed, reports := watch(testcycle.Origins(3))
			all = append(all, reports)
			f.Accept(sealed)
			synctest.Wait()
			if s := balanced(t, f, 3*(cycle+1)); s.Flushed != 2*(cycle+1) {
				t.Errorf("%+v", s)
			}
			wantReports(t, "a part was refused", reports, "doubtful")
		}
		sums.answers(nil)
		var idle testcycle.Cycle
		f.Accept(idle.Seal())
		synctest.Wait()
		if s := balanced(t, f, 9); s.Flushed != 9 {
			t.Errorf("%+v", s)
		}
		for _, reports := range all {
			wantReports(t, "all has arrived", reports, "doubtful settled")
		}
	})
}

// A copy that is accepted after a newer cycle was queued settles the cycles up to its own.
func TestTotals_OlderCopySettlesNoNewerCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sums := newSumming(answersAfter(time.Second, Attempt{}))
		f, _ := startScripted(t, sums, nil)
		first, second := testcycle.Spans(5), testcycle.Spans(3)
		f.Accept(first)
		synctest.Wait()
		f.Accept(second)
		time.Sleep(time.Second)
		synctest.Wait()
		_, isFirst := resolution(first.Delivery)
		_, isSecond := resolution(second.Delivery)
		if s := balanced(t, f, 8); s.Flushed != 5 || !isFirst || isSecond {
			t.Errorf("%+v; the first is settled: %v, the second: %v", s, isFirst, isSecond)
		}
	})
}

// Clients wait for the retry age at most. The spans of their cycle are held for longer.
func TestTotals_ClientsWaitForRetryAgeAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, newSumming(down), nil)
		first := testcycle.Spans(5)
		f.Accept(first)
		for waited := time.Duration(0); waited < DefaultRetryAge; waited += 10 * time.Second {
			if _, resolved := resolution(first.Delivery); resolved {
				t.Fatalf("reports after %v", waited)
			}
			time.Sleep(10 * time.Second)
			f.Accept(testcycle.Spans(1))
		}
		if err, _ := resolution(first.Delivery); !errors.Is(err, errNotYet) {
			t.Errorf("delivery %v", err)
		}
		if s := f.Stats(); s.Unsent[Expired] != 0 || s.Pending == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A destination that refuses totals repeatedly counts as one result. Waiting clients still wait for
// the other destination.
func TestTotals_RefusalIsOneResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startSeveral(t, Config{}, newSumming(always(Attempt{Outcome: OutcomeRefused, Err: errDown})),
			&scripted{answer: down})
		first := testcycle.Spans(5)
		f.Accept(first)
		for range 3 {
			synctest.Wait()
			if _, resolved := resolution(first.Delivery); resolved {
				t.Error("a cycle is answered that waits for a destination")
			}
			f.Accept(testcycle.Spans(1))
		}
	})
}

// The number of undelivered cycles is limited, however long the destination is unavailable. Clients of the
// oldest cycles get an error. The spans of these cycles are held, and are delivered with the next
// payload.
func TestTotals_OpenCyclesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sums := newSumming(down)
		f, _ := startScripted(t, sums, func(c *Config) { c.RetryAge = 24 * time.Hour })
		var deliveries []*aggregate.Delivery
		for range maxWaiting + 3 {
			sealed := testcycle.Spans(1)
			deliveries = append(deliveries, sealed.Delivery)
			f.Accept(sealed)
		}
		for i, d := range deliveries {
			if err, resolved := resolution(d); resolved != (i < 3) || resolved && !errors.Is(err, errTooMany) {
				t.Fatalf("cycle %d: %v, resolved %v", i, err, resolved)
			}
		}
		sums.answers(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := balanced(t, f, maxWaiting+3); s.Flushed != maxWaiting+3 {
			t.Errorf("%+v", s)
		}
	})
}

// An older payload that fails is not retried if a newer one is queued, even at shutdown. Its spans
// are delivered with the newer one.
func TestTotals_OlderPayloadIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := make(chan struct{})
		sums := newSumming(nil)
		sums.answers(func(_ context.Context, p *Payload) Attempt {
			if p.sequence == 0 {
				<-fail
				return Attempt{Outcome: OutcomeNotYet, Silent: true, Err: errNoAnswer}
			}
			return Attempt{}
		})
		f, _ := startScripted(t, sums, nil)
		first, second := testcycle.Spans(5), testcycle.Spans(3)
		f.Accept(first)
		synctest.Wait()
		f.Accept(second)
		go close(fail)
		f.Close(t.Context())
		if s := balanced(t, f, 8); s.Flushed != 8 || s.Payloads[ResultSuperseded] != 1 || sums.tried() != 2 {
			t.Errorf("%+v after %d tries", s, sums.tried())
		}
		for _, sealed := range []*aggregate.Sealed{first, second} {
			if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
				t.Errorf("delivery %v, resolved %v", err, resolved)
			}
		}
	})
}

func TestTotals_UndeliveredAtShutdownAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, newSumming(down), nil)
		first := testcycle.Spans(5)
		f.Accept(first)
		f.Accept(testcycle.Spans(3))
		f.Close(t.Context())
		if s := balanced(t, f, 8); s.Unsent[Shutdown] != 8 || s.Pending != 0 {
			t.Errorf("%+v", s)
		}
		if err, resolved := resolution(first.Delivery); err == nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
		late := testcycle.Spans(4)
		f.Accept(late)
		var idle testcycle.Cycle
		f.Accept(idle.Seal())
		if s := balanced(t, f, 12); s.Unsent[Shutdown] != 12 {
			t.Errorf("after another cycle %+v", s)
		}
		if err, _ := resolution(late.Delivery); !errors.Is(err, errClosed) {
			t.Errorf("delivery of a late cycle: %v", err)
		}
	})
}

// Spans that a payload of totals leaves out are unsent, up to the number of held spans.
func TestTotals_LeftOutSpansAreUnsent(t *testing.T) {
	for rejected, want := range map[uint64]uint64{2: 2, 9: 5} {
		synctest.Test(t, func(t *testing.T) {
			f, _ := startScripted(t, newSumming(always(Attempt{Rejected: rejected, Err: errDown})), nil)
			sealed := testcycle.Spans(5)
			f.Accept(sealed)
			synctest.Wait()
			if s := balanced(t, f, 5); s.Unsent[Rejected] != want || s.Flushed != 5-want {
				t.Errorf("%d left out: %+v", rejected, s)
			}
			if err, _ := resolution(sealed.Delivery); !errors.Is(err, errDown) {
				t.Errorf("delivery %v", err)
			}
		})
	}
}

// Whatever the destination does: the accounting balances at any moment, the destination has all spans
// that are counted as flushed, all limits hold, and at the end every span is flushed unless it was
// left out.
func TestAccounting_Totals(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 11))
			var answering sync.Mutex
			draw := func(n int) int {
				answering.Lock()
				defer answering.Unlock()
				return rnd.IntN(n)
			}
			leavesOut := seed%2 == 0
			sums := newSumming(func(ctx context.Context, _ *Payload) Attempt {
				select {
				case <-time.After(time.Duration(draw(4000)) * time.Millisecond):
				case <-ctx.Done():
					return Attempt{Outcome: OutcomeNotYet, Silent: true, Err: ctx.Err()}
				}
				switch draw(7) {
				case 0:
					return Attempt{
						Outcome: OutcomeNotYet, Err: errDown,
						After: time.Duration(draw(9)) * time.Second,
					}
				case 1:
					return Attempt{Outcome: OutcomeNotYet, Silent: true, Err: errNoAnswer}
				case 2:
					return Attempt{Outcome: OutcomeRefused, Err: errDown}
				case 3:
					if leavesOut {
						return Attempt{Rejected: uint64(draw(3)), Err: errDown}
					}
				}
				return Attempt{}
			})
			f, _ := startScripted(t, sums, func(c *Config) {
				c.RetryAge = time.Duration(1+draw(40)) * time.Second
			})
			f.queue.maxBytes = 100 * (1 + draw(30))
			accepted := uint64(0)
			check := func() Stats {
				synctest.Wait()
				s := balanced(t, f, accepted)
				if s.Flushed > sums.received() || s.QueueBytes > f.queue.maxBytes {
					t.Fatalf("seed %d: %+v, and the receiver counted %d", seed, s, sums.received())
				}
				return s
			}
			for range 60 {
				sealed := testcycle.Origins(draw(20))
				accepted += sealed.Spans()
				f.Accept(sealed)
				check()
				time.Sleep(time.Duration(draw(12)) * time.Second)
				check()
			}
			sums.answers(nil)
			for range 200 { // a copy that is longer than the queue needs some cycles
				f.queue.maxBytes = 1 << 20
				f.Accept(testcycle.Origins(0))
				time.Sleep(time.Minute)
			}
			s := check()
			all := uint64(0)
			for _, n := range slices.Collect(maps.Values(sums.reader)) {
				all += n
			}
			if all != accepted || s.Pending != 0 || !leavesOut && s.Flushed != accepted {
				t.Errorf("seed %d: at the end %+v of %d", seed, s, accepted)
			}
			for _, reason := range []Reason{Ambiguous, Expired, QueueFull, Shutdown, Unencodable, NotWanted} {
				if s.Unsent[reason] != 0 {
					t.Errorf("seed %d: %d are unsent, %s", seed, s.Unsent[reason], reason)
				}
			}
		})
	}
}
