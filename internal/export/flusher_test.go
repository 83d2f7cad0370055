package export

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

func TestCycle_AcceptedIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{}, nil)
		sealed := testcycle.Spans(5)
		f.Accept(sealed)
		synctest.Wait()
		if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
		if s := balanced(t, f, 5); s.Flushed != 5 || s.Payloads[ResultAccepted] != 1 ||
			s.PayloadBytes.Count() != 1 {
			t.Errorf("stats %+v", s)
		}
		if sealed.Keys != nil {
			t.Error("the cycle's memory was not released")
		}
	})
}

func TestCycle_EmptySendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, _ := startScripted(t, agent, nil)
		var c testcycle.Cycle
		sealed := c.Seal()
		f.Accept(sealed)
		if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
		synctest.Wait()
		if agent.tried() != 0 {
			t.Error("an empty cycle was sent")
		}
	})
}

func TestPayload_FinalOutcomes(t *testing.T) {
	for name, test := range map[string]struct {
		answer Attempt
		reason Reason
		result Result
		logged string
	}{
		"refused": {
			Attempt{Outcome: OutcomeRefused, Err: errors.New("bad payload")},
			Rejected,
			ResultRejected, "rejects",
		},
		"not wanted": {
			Attempt{Outcome: OutcomeNotWanted, Err: errors.New("404")},
			NotWanted, ResultNotWanted,
			"",
		},
		"unknown": {
			Attempt{Outcome: OutcomeUnknown, Err: errNoAnswer},
			Ambiguous, ResultAmbiguous,
			"did not respond",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &scripted{answer: always(test.answer)}
				f, log := startScripted(t, agent, nil)
				sealed := testcycle.Spans(7)
				f.Accept(sealed)
				time.Sleep(time.Minute)
				synctest.Wait()
				if agent.tried() != 1 {
					t.Errorf("tried %d times, once is right", agent.tried())
				}
				s := balanced(t, f, 7)
				if s.Unsent[test.reason] != 7 || s.Payloads[test.result] != 1 ||
					s.Payloads[ResultRetried] != 0 {
					t.Errorf("stats %+v", s)
				}
				if err, _ := resolution(sealed.Delivery); !errors.Is(err, test.answer.Err) {
					t.Errorf("delivery %v, want %v", err, test.answer.Err)
				}
				if strings.Count(log.String(), test.logged) != 1 {
					t.Errorf("log:\n%s", log)
				}
			})
		})
	}
}

func TestPause_GrowsWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, _ := startScripted(t, agent, func(c *Config) { c.RetryAge = 10 * time.Minute })
		f.Accept(testcycle.Spans(1))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		pause := shortestPause
		for i := 1; i < len(agent.tries); i++ {
			if got := agent.tries[i].at.Sub(agent.tries[i-1].at); got < pause/2 || got > pause {
				t.Errorf("pause %d is %v, want %v to %v", i, got, pause/2, pause)
			}
			pause = min(2*pause, longestPause)
		}
		if pause != longestPause {
			t.Errorf("only %d tries", len(agent.tries))
		}
	})
}

func TestRetryAfter_IsHonored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: always(Attempt{
			Outcome: OutcomeNotYet, Err: errDown,
			After: 45 * time.Second,
		})}
		f, _ := startScripted(t, agent, nil)
		f.Accept(testcycle.Spans(1))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(agent.tries) != 2 || agent.tries[1].at.Sub(agent.tries[0].at) != 45*time.Second {
			t.Errorf("tries %v", agent.tries)
		}
	})
}

func TestPayload_Expires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, log := startScripted(t, agent, nil)
		began := time.Now()
		first := testcycle.Spans(3)
		f.Accept(first)
		time.Sleep(time.Minute)
		f.Accept(testcycle.Spans(4))
		if err := first.Delivery.Wait(t.Context()); !errors.Is(err, errDown) ||
			!strings.Contains(err.Error(), "expired") {
			t.Errorf("delivery %v", err)
		}
		if age := time.Since(began); age != DefaultRetryAge {
			t.Errorf("dropped after %v, want %v", age, DefaultRetryAge)
		}
		synctest.Wait()
		s := balanced(t, f, 7)
		if s.Unsent[Expired] != 3 || s.Pending != 4 || s.Payloads[ResultGivenUp] != 1 {
			t.Errorf("stats %+v", s)
		}
		if strings.Count(log.String(), "dropping payloads") != 1 {
			t.Errorf("log:\n%s", log)
		}
	})
}

// Clients that requested a flush wait for the newest statistics, so new payloads evict old ones.
func TestQueue_FullEvictsOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, _ := startScripted(t, agent, nil)
		f.queue.maxBytes = 1000 // less than New accepts
		var deliveries []*aggregate.Delivery
		for range 6 {
			sealed := testcycle.Spans(2)
			deliveries = append(deliveries, sealed.Delivery)
			f.Accept(sealed)
			synctest.Wait()
		}
		s := balanced(t, f, 12)
		if s.QueueBytes > 1000 || s.Unsent[QueueFull] != 12-s.Pending || s.Pending == 0 {
			t.Errorf("stats %+v", s)
		}
		for i, d := range deliveries {
			if _, isResolved := resolution(d); isResolved != (uint64(i) < s.Unsent[QueueFull]/2) {
				t.Errorf("cycle %d dropped: %v", i, isResolved)
			}
		}
	})
}

func TestPayload_FailingLetsOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: func(_ context.Context, p *Payload) Attempt {
			if p.sequence == 0 {
				return Attempt{Outcome: OutcomeNotYet, Err: errDown}
			}
			return Attempt{}
		}}
		f, _ := startScripted(t, agent, nil)
		for range 5 {
			f.Accept(testcycle.Spans(1))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := balanced(t, f, 5); s.Flushed != 4 || s.Pending != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestAccept_DoesNotWaitForAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: func(ctx context.Context, _ *Payload) Attempt {
			<-ctx.Done()
			return Attempt{Outcome: OutcomeUnknown, Err: errNoAnswer}
		}}
		f, _ := startScripted(t, agent, nil)
		began := time.Now()
		f.Accept(testcycle.Spans(1))
		synctest.Wait()
		f.Accept(testcycle.Spans(1))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v", waited)
		}
		time.Sleep(DefaultTimeout)
		synctest.Wait()
		if s := balanced(t, f, 2); s.Unsent[Ambiguous] != 1 || agent.tried() != 2 {
			t.Errorf("stats %+v after the first request's time was over", s)
		}
	})
}

func TestClose_TriesQueuedOnceWithoutPause(t *testing.T) {
	for name, up := range map[string]bool{"agent up again": true, "agent still down": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &scripted{answer: down}
				f, _ := startScripted(t, agent, nil)
				sealed := testcycle.Spans(1)
				f.Accept(sealed)
				f.Accept(testcycle.Spans(2))
				synctest.Wait()
				before := agent.tried()
				if up {
					agent.answers(nil)
				}
				began := time.Now()
				f.Close(t.Context())
				if time.Since(began) != 0 {
					t.Errorf("closing paused for %v", time.Since(began))
				}
				if got := agent.tried() - before; got != 2 {
					t.Errorf("%d tries while closing, want one a payload", got)
				}
				s := balanced(t, f, 3)
				if want := map[bool]uint64{true: 3}[up]; s.Flushed != want || s.Unsent[Shutdown] != 3-want {
					t.Errorf("stats %+v", s)
				}
				if err, resolved := resolution(sealed.Delivery); !resolved || (err == nil) != up {
					t.Errorf("delivery %v, resolved %v", err, resolved)
				}
			})
		})
	}
}

func TestClose_EndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: func(ctx context.Context, _ *Payload) Attempt {
			<-ctx.Done()
			return Attempt{Outcome: OutcomeNotYet, Err: ctx.Err()}
		}}
		f, _ := startScripted(t, agent, nil)
		for range 3 {
			f.Accept(testcycle.Spans(1))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		f.Close(ctx)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("closing took %v", took)
		}
		late := testcycle.Spans(4)
		f.Accept(late)
		if s := balanced(t, f, 7); s.Unsent[Shutdown] != 7 || agent.tried() != 1 {
			t.Errorf("stats %+v after %d tries", s, agent.tried())
		}
		if err, _ := resolution(late.Delivery); !errors.Is(err, errClosed) {
			t.Errorf("delivery of a late cycle: %v", err)
		}
	})
}

func TestUnencodable_IsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := startScripted(t, &scripted{}, func(c *Config) { c.MaxPayloadBytes = MinPayloadBytes })
		var c testcycle.Cycle
		origin := c.Origin(testcycle.Golden().Origins[0])
		for _, resource := range []string{"r", strings.Repeat("r", MinPayloadBytes)} {
			key := testcycle.Golden().Keys[0].Key
			key.Resource = resource
			c.Add(0, c.Key(origin, key), 0, 1, 0, 1)
		}
		sealed := c.Seal()
		f.Accept(sealed)
		synctest.Wait()
		if s := balanced(t, f, 2); s.Unsent[Unencodable] != 1 || s.Flushed != 1 {
			t.Errorf("stats %+v", s)
		}
		if err, _ := resolution(sealed.Delivery); !errors.Is(err, errUnencodable) ||
			!strings.Contains(log.String(), "maximum payload size") {
			t.Errorf("delivery %v, log:\n%s", err, log)
		}
	})
}

func TestStats_ReasonsAndResultsFromStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{}, nil)
		s := f.Stats()
		if len(s.Unsent) != len(Reasons) || len(s.Payloads) != len(Results) {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestDestination_OwnLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[int]int{
			0: DefaultMaxPayloadBytes, 25 << 20: DefaultMaxPayloadBytes, 1 << 20: 1 << 20,
			300 << 10: 300 << 10, 5: MinPayloadBytes,
		} {
			exporter := &scripted{takes: limit}
			f, _ := startScripted(t, exporter, nil)
			f.Accept(testcycle.Spans(1))
			if exporter.limits[0] != want {
				t.Errorf("destination with a limit of %d: payload limit %d, want %d", limit, exporter.limits[0], want)
			}
		}
	})
}

// A payload that was accepted in part is not retried, and the rejected spans are unsent.
func TestDestination_RejectedSpansAreUnsent(t *testing.T) {
	for rejected, want := range map[uint64]uint64{0: 0, 2: 2, 5: 5, 9: 5} {
		synctest.Test(t, func(t *testing.T) {
			answer := Attempt{Rejected: rejected}
			if rejected > 0 {
				answer.Err = errors.New("some are too old")
			}
			exporter := &scripted{answer: always(answer)}
			f, log := startScripted(t, exporter, nil)
			sealed := testcycle.Spans(5)
			f.Accept(sealed)
			time.Sleep(time.Minute)
			synctest.Wait()
			if s := balanced(t, f, 5); s.Unsent[Rejected] != want || s.Payloads[ResultAccepted] != 1 ||
				exporter.tried() != 1 {
				t.Errorf("%d left out: stats %+v after %d tries", rejected, s, exporter.tried())
			}
			if err, resolved := resolution(sealed.Delivery); !resolved || (err == nil) != (want == 0) {
				t.Errorf("%d left out: delivery %v", rejected, err)
			}
			if strings.Contains(log.String(), "rejects a part") != (want > 0) {
				t.Errorf("%d left out, log:\n%s", rejected, log)
			}
		})
	}
}

// lingering is closed while it encodes.
type lingering struct {
	*scripted
	close func()
}

func (l *lingering) describe() Exporter { return describePush(l.scripted, l) }

func (l *lingering) Encode(c *Cycle, emit func(*Payload)) Encoded {
	go l.close()
	for range 1000 { // the closing goroutine gets as far as it can
		runtime.Gosched()
	}
	return l.scripted.Encode(c, emit)
}

// A cycle that is being encoded at shutdown gets an outcome like any other.
func TestClose_WhileCycleIsEncoded(t *testing.T) {
	exporter := &lingering{scripted: &scripted{}}
	f, _ := startScripted(t, exporter, nil)
	closed := make(chan struct{})
	exporter.close = func() { f.Close(t.Context()); close(closed) }
	f.Accept(testcycle.Spans(5))
	<-closed
	if s := balanced(t, f, 5); s.Flushed != 5 {
		t.Errorf("stats %+v", s)
	}
}

// TestRows_DifferByKeyBucketAndMapping counts pairs of groups that are neighbors and differ in one
// of key, bucket and mapping. Each group gets its own row.
func TestRows_DifferByKeyBucketAndMapping(t *testing.T) {
	now := time.Now()
	one := aggregate.Group{
		Key:     span.Key{Resource: "a"},
		Bucket:  now.Truncate(testcycle.Width).UnixNano(),
		Mapping: sketch.AgentMapping,
		Counts:  aggregate.Counts{Spans: 1},
	}
	for name, change := range map[string]func(*aggregate.Group){
		"key":     func(g *aggregate.Group) { g.Key.Resource = "b" },
		"bucket":  func(g *aggregate.Group) { g.Bucket -= int64(testcycle.Width) },
		"mapping": func(g *aggregate.Group) { g.Mapping = sketch.Mapping{Gamma: 1.01} },
	} {
		other := one
		change(&other)
		var m Merger
		rows := m.Merge(testcycle.Merged(t, now, one, other, one, other))
		if len(rows) != 2 || rows[0].Spans != 2 || rows[1].Spans != 2 {
			t.Errorf("two groups that differ in their %s have %d rows, the first with %d spans", name,
				len(rows), rows[0].Spans)
		}
	}
}

func TestWhole_KeepsWholeCountsAndSaturates(t *testing.T) {
	for _, most := range []uint64{math.MaxUint64, math.MaxInt64} {
		for in, want := range map[float64]uint64{
			0: 0, 1: 1, 1 << 53: 1 << 53, -1: 0, -0.5: 0, math.Inf(1): most, math.Inf(-1): 0,
			1 << 62: 1 << 62, 1 << 63: min(1<<63, most), 1 << 64: most, 1e300: most,
		} {
			if got := RoundRandomly(in, most); got != want {
				t.Errorf("Whole(%v, %d) = %d, want %d", in, most, got, want)
			}
		}
		if got := RoundRandomly(math.NaN(), most); got != 0 {
			t.Errorf("Whole(NaN, %d) = %d", most, got)
		}
	}
}

func TestWhole_IsExactInMean(t *testing.T) {
	const n = 100_000
	var sum uint64
	for range n {
		r := RoundRandomly(7.25, math.MaxUint64)
		if r != 7 && r != 8 {
			t.Fatalf("Whole(7.25) = %d", r)
		}
		sum += r
	}
	// Nine standard deviations of the sum: 0.433 * sqrt(n) = 137.
	if diff := math.Abs(float64(sum) - 7.25*n); diff > 9*137 {
		t.Errorf("the mean of Whole(7.25) is %v", float64(sum)/n)
	}
}

func TestConfig_CheckedFirst(t *testing.T) {
	for name, cfg := range map[string]Config{
		"payloads too small":   {MaxPayloadBytes: MinPayloadBytes - 1},
		"payloads too large":   {MaxPayloadBytes: mostPayloadBytes + 1},
		"queue below one":      {RetryBytes: DefaultMaxPayloadBytes - 1},
		"an age in the future": {RetryAge: -time.Second},
		"no time to answer":    {Timeout: -time.Second},
	} {
		if f, err := New(cfg, (&scripted{}).describe()); err == nil {
			f.Close(t.Context())
			t.Errorf("%s: accepted", name)
		}
	}
}
