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

// watched is a sealed cycle with its reports.
func watched(sealed *aggregate.Sealed) (*aggregate.Sealed, *testcycle.Reports) {
	return sealed, testcycle.Watch(sealed)
}

// says fails the test unless the cycle has exactly the given reports.
func says(t *testing.T, when string, told *testcycle.Reports, want string) {
	t.Helper()
	synctest.Wait()
	if got := told.String(); got != want {
		t.Errorf("%s: told %q, want %q", when, got, want)
	}
}

// steered is an exporter whose test answers each delivery.
type steered struct {
	*scripted
	mu      sync.Mutex
	waiting map[string]chan Attempt // deliveries in flight, by service of the payload
}

func newSteered(name string) *steered {
	s := &steered{scripted: &scripted{name: name}, waiting: map[string]chan Attempt{}}
	s.answer = func(_ context.Context, p *Payload) Attempt { return s.ask(p.Origin.Service) }
	return s
}

func (s *steered) ask(service string) Attempt {
	answer := make(chan Attempt)
	s.mu.Lock()
	s.waiting[service] = answer
	s.mu.Unlock()
	return <-answer
}

// answers answers the delivery of a service, which must be in flight.
func (s *steered) answers(t *testing.T, service string, a Attempt) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	answer := s.waiting[service]
	delete(s.waiting, service)
	s.mu.Unlock()
	if answer == nil {
		t.Fatalf("nothing of %q is under way to %s", service, s.name)
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
		"accepted":                {[]Attempt{{}}, "doubtful settled"},
		"accepted but for a part": {[]Attempt{{Rejected: 1, Err: errDown}}, "doubtful settled"},
		"ambiguous":               {[]Attempt{unknown}, "doubtful settled"},
		"refused":                 {[]Attempt{refused}, "doubtful clear settled"},
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
				sealed, told := watched(testcycle.Spans(3))
				tries := 0
				f, _ := startScripted(t, &scripted{answer: func(context.Context, *Payload) Attempt {
					if !strings.HasSuffix(told.String(), "doubtful") {
						t.Errorf("told %q before try %d", told, tries+1)
					}
					tries++
					return c.answers[tries-1]
				}}, nil)
				f.Accept(sealed)
				time.Sleep(time.Minute)
				says(t, "at the end", told, c.want)
			})
		})
	}
}

// If several payloads of a cycle are in flight, the last result ends the doubt, unless a payload
// was accepted.
func TestDoubt_WhileAnyPayloadIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteered("agent")
		f, _ := startScripted(t, s, nil)
		sealed, told := watched(testcycle.Origins(3))
		f.Accept(sealed)
		s.answers(t, "s0", notYet)
		s.answers(t, "s1", refused)
		says(t, "one is under way", told, "doubtful")
		s.answers(t, "s2", notYet)
		says(t, "none is", told, "doubtful clear")
		time.Sleep(time.Minute) // one payload is sent alone after a failure
		s.answers(t, "s0", Attempt{})
		says(t, "one was taken", told, "doubtful clear doubtful")
		s.answers(t, "s2", notYet)
		says(t, "the other was not", told, "doubtful clear doubtful")
		time.Sleep(time.Minute)
		s.answers(t, "s2", refused)
		says(t, "the other was refused", told, "doubtful clear doubtful settled")
	})
}

// A cycle that one destination has stays in doubt until it has its outcome at the other.
func TestDoubt_UntilAllDestinationsHaveIt(t *testing.T) {
	for name, c := range map[string]struct {
		first, other Attempt
		then, want   string
	}{
		"taken by one":    {Attempt{}, notYet, "doubtful", "doubtful settled"},
		"maybe by one":    {unknown, notYet, "doubtful", "doubtful settled"},
		"taken by none":   {notYet, notYet, "doubtful clear", "doubtful clear settled"},
		"refused by one":  {refused, notYet, "doubtful clear", "doubtful clear settled"},
		"taken by both":   {Attempt{}, Attempt{}, "doubtful settled", "doubtful settled"},
		"refused by both": {refused, refused, "doubtful clear settled", "doubtful clear settled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, other := newSteered("one"), newSteered("other")
				f := startSeveral(t, Config{RetryAge: time.Millisecond}, one, other) // shorter than a pause
				sealed, told := watched(testcycle.Origins(1))
				f.Accept(sealed)
				one.answers(t, "s0", c.first)
				says(t, "the other is under way", told, "doubtful")
				other.answers(t, "s0", c.other)
				says(t, "none is under way", told, c.then)
				time.Sleep(time.Minute)
				says(t, "what waits has expired", told, c.want)
			})
		})
	}
}

// startTotals starts a flusher of running totals whose test answers each delivery.
func startTotals(t *testing.T) (*steered, running, *summing) {
	s := newSteered("sums")
	sums := newSumming(func(_ context.Context, p *Payload) Attempt {
		service, _ := total(p)
		return s.ask(service)
	})
	f, _ := startScripted(t, sums, nil)
	return s, f, sums
}

// A payload of running totals puts all open cycles up to its own in doubt, and no newer ones. After
// it was accepted, they stay in doubt until all payloads of a copy were accepted.
func TestDoubt_TotalsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, _ := startTotals(t)
		sealed, first := watched(testcycle.Origins(2))
		f.Accept(sealed)
		says(t, "the first copy is under way", first, "doubtful")
		sealed, second := watched(testcycle.Origins(2))
		f.Accept(sealed)
		says(t, "an older copy is under way", second, "")
		s.answers(t, "s0", notYet)
		says(t, "it did not arrive", first, "doubtful clear")
		time.Sleep(time.Minute)
		for _, told := range []*testcycle.Reports{first, second} {
			says(t, "a copy of both is under way", told,
				map[*testcycle.Reports]string{first: "doubtful clear doubtful", second: "doubtful"}[told])
		}
		s.answers(t, "s0", refused)
		says(t, "its first payload was refused, the next is under way", second, "doubtful clear doubtful")
		s.answers(t, "s1", Attempt{})
		says(t, "a part of it has arrived", first, "doubtful clear doubtful clear doubtful")
		says(t, "a part of it has arrived", second, "doubtful clear doubtful")
		sealed, third := watched(testcycle.Origins(1))
		f.Accept(sealed)
		s.answers(t, "s0", Attempt{})
		says(t, "half of the next has arrived", third, "doubtful")
		s.answers(t, "s1", Attempt{})
		says(t, "all has arrived", first, "doubtful clear doubtful clear doubtful settled")
		says(t, "all has arrived", second, "doubtful clear doubtful settled")
		says(t, "all has arrived", third, "doubtful settled")
	})
}

// Running totals that may have arrived are retried, because a second copy changes nothing. Their
// cycles stay in doubt, because another process would count the spans again.
func TestDoubt_TotalsRetriedAfterNoResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, _ := startTotals(t)
		sealed, told := watched(testcycle.Origins(1))
		f.Accept(sealed)
		s.answers(t, "s0", unknown)
		says(t, "it may have arrived", told, "doubtful")
		if st := balanced(t, f, 1); st.Pending != 1 || st.Payloads[ResultRetried] != 1 {
			t.Errorf("%+v", st)
		}
		time.Sleep(time.Minute)
		s.answers(t, "s0", notYet)
		says(t, "the second copy did not arrive", told, "doubtful")
		time.Sleep(time.Minute)
		s.answers(t, "s0", Attempt{})
		says(t, "the third did", told, "doubtful settled")
		if st := balanced(t, f, 1); st.Flushed != 1 || st.Unsent[Ambiguous] != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A settled cycle has no further reports, even if a payload with its spans is in flight.
func TestDoubt_NoReportAfterSettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, sums := startTotals(t)
		sealed, told := watched(testcycle.Origins(1))
		f.Accept(sealed)
		synctest.Wait()
		for range maxWaiting {
			f.Accept(testcycle.Origins(1))
		}
		says(t, "it was given up, being the oldest of too many", told, "doubtful settled")
		s.answers(t, "s0", notYet)
		says(t, "it has returned", told, "doubtful settled")
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
				then, waits := want, ""
				if totals {
					x, waits = newSumming(hanging), "settled"
					then = strings.TrimSuffix(want, " settled") + " settled"
				}
				f, _ := startScripted(t, x, nil)
				underWay, first := watched(testcycle.Spans(1))
				f.Accept(underWay)
				synctest.Wait()
				waiting, second := watched(testcycle.Spans(1))
				f.Accept(waiting)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				f.Close(ctx)
				says(t, fmt.Sprint("under way, totals ", totals), first, then)
				says(t, fmt.Sprint("waiting, totals ", totals), second, waits)
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
			all, taken := map[*aggregate.Delivery]*testcycle.Reports{}, map[*aggregate.Delivery]bool{}
			check := func(c *cycleState, takes bool) {
				mu.Lock()
				defer mu.Unlock()
				told := all[c.delivery].String()
				if strings.HasSuffix(told, "clear") || told == "" {
					t.Errorf("seed %d: told %q while a payload is under way", seed, told)
				}
				if was := strings.Count(told, "clear"); taken[c.delivery] && was > 0 &&
					!strings.Contains(told[strings.LastIndex(told, "clear"):], "doubtful") {
					t.Errorf("seed %d: told %q though it was taken", seed, told)
				}
				taken[c.delivery] = taken[c.delivery] || takes
			}
			answer := func(_ context.Context, p *Payload) Attempt {
				said := []*cycleState{p.cycle}
				if p.snapshot != nil {
					said = totals.open.statesUpTo(p.snapshot.number)
				}
				for _, c := range said {
					check(c, false)
				}
				time.Sleep(time.Duration(draw(3000)) * time.Millisecond)
				a := []Attempt{{}, {}, notYet, notYet, refused, unknown}[draw(6)]
				for _, c := range said {
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
				sealed, told := watched(testcycle.Origins(draw(6)))
				mu.Lock()
				all[sealed.Delivery] = told
				mu.Unlock()
				f.Accept(sealed)
				time.Sleep(time.Duration(draw(5000)) * time.Millisecond)
			}
			time.Sleep(time.Minute) // until no payload is queued that shutdown would abandon
			f.Close(t.Context())
			for delivery, told := range all {
				words := strings.Fields(told.String())
				for i, word := range words {
					if isLast := i == len(words)-1; (word == "settled") != isLast ||
						!isLast && (word == "doubtful") != (i%2 == 0) {
						t.Errorf("seed %d: told %q", seed, told)
						break
					}
				}
				if n := len(words); n == 0 || taken[delivery] && words[max(0, n-2)] != "doubtful" {
					t.Errorf("seed %d: told %q, taken %v", seed, told, taken[delivery])
				}
			}
		})
	}
}
