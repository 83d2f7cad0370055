package export

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// watch returns a sealed cycle and its reports.
func watch(sealed *aggregate.Sealed) (*aggregate.Sealed, *testcycle.Reports) {
	return sealed, testcycle.Watch(sealed)
}

// wantReports fails the test unless the reports of the cycle are exactly want.
func wantReports(t *testing.T, when string, reports *testcycle.Reports, want string) {
	t.Helper()
	synctest.Wait()
	if got := reports.String(); got != want {
		t.Errorf("%s: reports %q, want %q", when, got, want)
	}
}

// manualExporter is an exporter that answers a delivery when the test calls respond.
type manualExporter struct {
	*scripted
	mu      sync.Mutex
	waiting map[string]chan Attempt // deliveries in flight, by service of the payload
}

func newManual(name string) *manualExporter {
	s := &manualExporter{scripted: &scripted{name: name}, waiting: map[string]chan Attempt{}}
	s.answer = func(_ context.Context, p *Payload) Attempt { return s.wait(p.Origin.Service) }
	return s
}

func (s *manualExporter) wait(service string) Attempt {
	answer := make(chan Attempt)
	s.mu.Lock()
	s.waiting[service] = answer
	s.mu.Unlock()
	return <-answer
}

// respond answers the delivery of a service. The delivery must be in flight.
func (s *manualExporter) respond(t *testing.T, service string, a Attempt) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	answer := s.waiting[service]
	delete(s.waiting, service)
	s.mu.Unlock()
	if answer == nil {
		t.Fatalf("no delivery of %q is in flight to %s", service, s.name)
	}
	answer <- a
	synctest.Wait()
}

var (
	notYet  = Attempt{Outcome: OutcomeNotYet, Err: errDown}
	refused = Attempt{Outcome: OutcomeRefused, Err: errDown}
	unknown = Attempt{Outcome: OutcomeUnknown, Silent: true, Err: errNoAnswer}
)

// A cycle is in doubt before its payload is sent. The doubt ends if the payload certainly did not
// arrive.
func TestDoubt_WhilePayloadIsInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		answers []Attempt
		want    string
	}{
		"accepted":         {[]Attempt{{}}, "doubtful settled"},
		"accepted in part": {[]Attempt{{Rejected: 1, Err: errDown}}, "doubtful settled"},
		"ambiguous":        {[]Attempt{unknown}, "doubtful settled"},
		"refused":          {[]Attempt{refused}, "doubtful clear settled"},
		"not wanted": {
			[]Attempt{{Outcome: OutcomeNotWanted, Err: errDown}},
			"doubtful clear settled",
		},
		"accepted at last": {
			[]Attempt{notYet, notYet, {}},
			"doubtful clear doubtful clear doubtful settled",
		},
		"refused at last": {[]Attempt{notYet, refused}, "doubtful clear doubtful clear settled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sealed, reports := watch(testcycle.Spans(3))
				tries := 0
				f, _ := startScripted(t, &scripted{answer: func(context.Context, *Payload) Attempt {
					if !strings.HasSuffix(reports.String(), "doubtful") {
						t.Errorf("reports %q before try %d", reports, tries+1)
					}
					tries++
					return c.answers[tries-1]
				}}, nil)
				f.Accept(sealed)
				time.Sleep(time.Minute)
				wantReports(t, "at the end", reports, c.want)
			})
		})
	}
}

// If several payloads of a cycle are in flight, the last result ends the doubt, unless a payload
// was accepted.
func TestDoubt_WhileAnyPayloadIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newManual("agent")
		f, _ := startScripted(t, s, nil)
		sealed, reports := watch(testcycle.Origins(3))
		f.Accept(sealed)
		s.respond(t, "s0", notYet)
		s.respond(t, "s1", refused)
		wantReports(t, "one payload is in flight", reports, "doubtful")
		s.respond(t, "s2", notYet)
		wantReports(t, "no payload is in flight", reports, "doubtful clear")
		time.Sleep(time.Minute) // one payload is sent alone after a failure
		s.respond(t, "s0", Attempt{})
		wantReports(t, "one was accepted", reports, "doubtful clear doubtful")
		s.respond(t, "s2", notYet)
		wantReports(t, "the other was not accepted", reports, "doubtful clear doubtful")
		time.Sleep(time.Minute)
		s.respond(t, "s2", refused)
		wantReports(t, "the other was refused", reports, "doubtful clear doubtful settled")
	})
}

// A cycle that one destination accepted stays in doubt until it has its outcome at the other.
func TestDoubt_UntilAllDestinationsHaveIt(t *testing.T) {
	for name, c := range map[string]struct {
		first, other Attempt
		then, want   string
	}{
		"accepted by one":  {Attempt{}, notYet, "doubtful", "doubtful settled"},
		"unknown at one":   {unknown, notYet, "doubtful", "doubtful settled"},
		"accepted by none": {notYet, notYet, "doubtful clear", "doubtful clear settled"},
		"refused by one":   {refused, notYet, "doubtful clear", "doubtful clear settled"},
		"accepted by both": {Attempt{}, Attempt{}, "doubtful settled", "doubtful settled"},
		"refused by both":  {refused, refused, "doubtful clear settled", "doubtful clear settled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, other := newManual("one"), newManual("other")
				f := startSeveral(t, Config{RetryAge: time.Millisecond}, one, other) // shorter than a pause
				sealed, reports := watch(testcycle.Origins(1))
				f.Accept(sealed)
				one.respond(t, "s0", c.first)
				wantReports(t, "the other is in flight", reports, "doubtful")
				other.respond(t, "s0", c.other)
				wantReports(t, "none is in flight", reports, c.then)
				time.Sleep(time.Minute)
				wantReports(t, "the queued payload has expired", reports, c.want)
			})
		})
	}
}

// startTotals starts a flusher of running totals whose test answers each delivery.
func startTotals(t *testing.T) (*manualExporter, running, *summing) {
	s := newManual("sums")
	sums := newSumming(func(_ context.Context, p *Payload) Attempt {
		service, _ := total(p)
		return s.wait(service)
	})
	f, _ := startScripted(t, sums, nil)
	return s, f, sums
}

// A payload of running totals puts all undelivered cycles up to its own in doubt, and no newer ones. After
// it was accepted, they stay in doubt until all payloads of a copy were accepted.
func TestDoubt_TotalsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, _ := startTotals(t)
		sealed, first := watch(testcycle.Origins(2))
		f.Accept(sealed)
		wantReports(t, "the first copy is in flight", first, "doubtful")
		sealed, second := watch(testcycle.Origins(2))
		f.Accept(sealed)
		wantReports(t, "an older copy is in flight", second, "")
		s.respond(t, "s0", notYet)
		wantReports(t, "it did not arrive", first, "doubtful clear")
		time.Sleep(time.Minute)
		for _, reports := range []*testcycle.Reports{first, second} {
			wantReports(t, "a copy with both cycles is in flight", reports,
				map[*testcycle.Reports]string{first: "doubtful clear doubtful", second: "doubtful"}[reports])
		}
		s.respond(t, "s0", refused)
		wantReports(t, "its first payload was refused, the next is in flight", second, "doubtful clear doubtful")
		s.respond(t, "s1", Attempt{})
		wantReports(t, "a part of it has arrived", first, "doubtful clear doubtful clear doubtful")
		wantReports(t, "a part of it has arrived", second, "doubtful clear doubtful")
		sealed, third := watch(testcycle.Origins(1))
		f.Accept(sealed)
		s.respond(t, "s0", Attempt{})
		wantReports(t, "half of the next copy has arrived", third, "doubtful")
		s.respond(t, "s1", Attempt{})
		wantReports(t, "all has arrived", first, "doubtful clear doubtful clear doubtful settled")
		wantReports(t, "all has arrived", second, "doubtful clear doubtful settled")
		wantReports(t, "all has arrived", third, "doubtful settled")
	})
}

// Running totals that may have arrived are retried, because a second copy changes nothing. Their
// cycles stay in doubt, because another process would count the spans again.
func TestDoubt_TotalsRetriedAfterNoResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, _ := startTotals(t)
		sealed, reports := watch(testcycle.Origins(1))
		f.Accept(sealed)
		s.respond(t, "s0", unknown)
		wantReports(t, "it may have arrived", reports, "doubtful")
		if st := balanced(t, f, 1); st.Pending != 1 || st.Payloads[ResultRetried] != 1 {
			t.Errorf("%+v", st)
		}
		time.Sleep(time.Minute)
		s.respond(t, "s0", notYet)
		wantReports(t, "the second copy did not arrive", reports, "doubtful")
		time.Sleep(time.Minute)
		s.respond(t, "s0", Attempt{})
		wantReports(t, "the third did", reports, "doubtful settled")
		if st := balanced(t, f, 1); st.Flushed != 1 || st.Unsent[Ambiguous] != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A settled cycle has no further reports, even if a payload with its spans is in flight.
func TestDoubt_NoReportAfterSettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, sums := startTotals(t)
		sealed, reports := watch(testcycle.Origins(1))
		f.Accept(sealed)
		synctest.Wait()
		for range maxWaiting {
			f.Accept(testcycle.Origins(1))
		}
		wantReports(t, "it was dropped as the oldest of too many", reports, "doubtful settled")
		s.respond(t, "s0", notYet)
		wantReports(t, "its delivery has ended", reports, "doubtful settled")
		sums.answers(nil)
	})
}

// At shutdown, the doubt of a cycle in flight ends if the payload certainly did not arrive.
// Abandoned cycles stay open, so that the next daemon knows that no destination has them if this
// one is killed before it has reported the loss. Totals are settled.
func TestStop_LeavesAbandonedCyclesOpen(t *testing.T) {
	for outcome, want := range map[Outcome]string{
		OutcomeNotYet:  "doubtful clear",
		OutcomeUnknown: "doubtful settled",
	} {
		for _, totals := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				hanging := func(ctx context.Context, _ *Payload) Attempt {
					<-ctx.Done()
					return Attempt{Outcome: outcome, Silent: true, Err: ctx.Err()}
				}
				var x describer = &scripted{answer: hanging}
				then, wantQueued := want, ""
				if totals {
					x, wantQueued = newSumming(hanging), "settled"
					then = strings.TrimSuffix(want, " settled") + " settled"
				}
				f, _ := startScripted(t, x, nil)
				inFlight, first := watch(testcycle.Spans(1))
				f.Accept(inFlight)
				synctest.Wait()
				queued, second := watch(testcycle.Spans(1))
				f.Accept(queued)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				f.Close(ctx)
				wantReports(t, fmt.Sprint("in flight, totals ", totals), first, then)
				wantReports(t, fmt.Sprint("queued, totals ", totals), second, wantQueued)
			})
		}
	}
}

// Whatever three destinations do, one of them with totals: a cycle is in doubt while a payload of
// it is in flight, and permanently after one was accepted. Only changes are reported, and
// settlement is reported last and once.
func TestDoubt_AgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			rnd := rand.New(rand.NewPCG(seed, 34))
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return rnd.IntN(n)
			}
			var totals *pushDestination
			all, accepted := map[*aggregate.Delivery]*testcycle.Reports{}, map[*aggregate.Delivery]bool{}
			check := func(c *cycleState, isAccepted bool) {
				mu.Lock()
				defer mu.Unlock()
				reports := all[c.delivery].String()
				if strings.HasSuffix(reports, "clear") || reports == "" {
					t.Errorf("seed %d: reports %q while a payload is in flight", seed, reports)
				}
				if was := strings.Count(reports, "clear"); accepted[c.delivery] && was > 0 &&
					!strings.Contains(reports[strings.LastIndex(reports, "clear"):], "doubtful") {
					t.Errorf("seed %d: reports %q although its payload was accepted", seed, reports)
				}
				accepted[c.delivery] = accepted[c.delivery] || isAccepted
			}
			answer := func(_ context.Context, p *Payload) Attempt {
				cycles := []*cycleState{p.cycle}
				if p.snapshot != nil {
					cycles = totals.undelivered.statesUpTo(p.snapshot.number)
				}
				for _, c := range cycles {
					check(c, false)
				}
				time.Sleep(time.Duration(draw(3000)) * time.Millisecond)
				a := []Attempt{{}, {}, notYet, notYet, refused, unknown}[draw(6)]
				for _, c := range cycles {
					check(c, a.Outcome == OutcomeAccepted || a.Outcome == OutcomeUnknown)
				}
				return a
			}
			f := startSeveral(t, Config{RetryAge: time.Duration(1+draw(20)) * time.Second},
				&scripted{name: "one", answer: answer}, &scripted{
					name: "strict", inOrder: true,
					answer: answer,
				}, newSumming(answer))
			totals = f.Destinations()[2].(*pushDestination)
			for range 30 {
				sealed, reports := watch(testcycle.Origins(draw(6)))
				mu.Lock()
				all[sealed.Delivery] = reports
				mu.Unlock()
				f.Accept(sealed)
				time.Sleep(time.Duration(draw(5000)) * time.Millisecond)
			}
			time.Sleep(time.Minute) // until no payload is queued that shutdown would abandon
			f.Close(t.Context())
			for delivery, reports := range all {
				words := strings.Fields(reports.String())
				for i, word := range words {
					if isLast := i == len(words)-1; (word == "settled") != isLast ||
						!isLast && (word == "doubtful") != (i%2 == 0) {
						t.Errorf("seed %d: reports %q", seed, reports)
						break
					}
				}
				if n := len(words); n == 0 || accepted[delivery] && words[max(0, n-2)] != "doubtful" {
					t.Errorf("seed %d: reports %q, accepted %v", seed, reports, accepted[delivery])
				}
			}
		})
	}
}
