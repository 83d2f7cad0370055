package flush

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// scripted is an agent that answers as it is told, without a network, so that
// tests can run in synthetic time.
type scripted struct {
	mu     sync.Mutex
	answer func(ctx context.Context, p *payload) attempt
	said   func() (info, error)
	tries  []try
	asked  []time.Time // when /info was read
}

type try struct {
	sequence uint64
	at       time.Time
}

func (s *scripted) post(ctx context.Context, p *payload) attempt {
	s.mu.Lock()
	s.tries = append(s.tries, try{p.sequence, time.Now()})
	reply := s.answer
	s.mu.Unlock()
	if reply == nil {
		return attempt{}
	}
	return reply(ctx, p)
}

func (s *scripted) info(context.Context) (info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, time.Now())
	if s.said == nil {
		return info{features: DefaultFeatures(), state: "first"}, nil
	}
	return s.said()
}

// answers changes what the agent does from now on.
func (s *scripted) answers(reply func(ctx context.Context, p *payload) attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = reply
}

// comesBack ends whatever was wrong.
func (s *scripted) comesBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.said = nil, nil
}

func (s *scripted) tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tries)
}

func always(a attempt) func(context.Context, *payload) attempt {
	return func(context.Context, *payload) attempt { return a }
}

var (
	errDown = errors.New("connection refused")
	down    = always(attempt{outcome: notYet, silent: true, err: errDown})
	away    = func() (info, error) { return info{}, errDown }
)

// startScripted runs a flusher whose log is returned, and closes it at the end.
func startScripted(t *testing.T, agent agentClient, edit func(*Config)) (*Flusher, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	cfg := Config{Agent: AgentURL{"unix", "/nowhere"}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	if edit != nil {
		edit(&cfg)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	f := start(cfg, agent, nil)
	t.Cleanup(func() { f.Close(t.Context()) })
	return f, &log
}

// resolution is a delivery's, if it has one yet.
func resolution(d *aggregate.Delivery) (err error, resolved bool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 { // both cases of Wait may be ready; it then picks either
		if err = d.Wait(ctx); !errors.Is(err, context.Canceled) {
			return err, true
		}
	}
	return nil, false
}

// balanced fails the test if a span is not in exactly one place.
func balanced(t *testing.T, f *Flusher, accepted uint64) Stats {
	t.Helper()
	s := f.Stats()
	sum := s.Flushed + s.Held
	for _, n := range s.Unsent {
		sum += n
	}
	if sum != accepted {
		t.Errorf("%d flushed, %d held, unsent %v: %d in all, want %d", s.Flushed, s.Held, s.Unsent, sum, accepted)
	}
	return s
}

func TestAcceptedCycleIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{}, nil)
		sealed := someSpans(5)
		f.Accept(sealed)
		synctest.Wait()
		if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
		if s := balanced(t, f, 5); s.Flushed != 5 || s.Payloads[ResultAccepted] != 1 || s.PayloadBytes.Count() != 1 {
			t.Errorf("stats %+v", s)
		}
		if sealed.Keys != nil {
			t.Error("the cycle's memory was not released")
		}
	})
}

func TestEmptyCycleSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, _ := startScripted(t, agent, nil)
		var c cycle
		sealed := c.seal()
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

func TestFinalOutcomes(t *testing.T) {
	for name, test := range map[string]struct {
		answer attempt
		reason Reason
		result Result
		logged string
	}{
		"refused":    {attempt{outcome: refused, err: errors.New("bad payload")}, Rejected, ResultRejected, "rejects"},
		"not wanted": {attempt{outcome: notWanted, err: errors.New("404")}, NotWanted, ResultNotWanted, "downgraded"},
		"unknown":    {attempt{outcome: unknown, err: errNoAnswer}, Ambiguous, ResultAmbiguous, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &scripted{answer: always(test.answer)}
				f, log := startScripted(t, agent, nil)
				sealed := someSpans(7)
				f.Accept(sealed)
				time.Sleep(time.Minute)
				synctest.Wait()
				if agent.tried() != 1 {
					t.Errorf("tried %d times, once is right", agent.tried())
				}
				s := balanced(t, f, 7)
				if s.Unsent[test.reason] != 7 || s.Payloads[test.result] != 1 || s.Payloads[ResultRetried] != 0 {
					t.Errorf("stats %+v", s)
				}
				if err, _ := resolution(sealed.Delivery); !errors.Is(err, test.answer.err) {
					t.Errorf("delivery %v, want %v", err, test.answer.err)
				}
				if strings.Count(log.String(), test.logged) != 1 {
					t.Errorf("log:\n%s", log)
				}
			})
		})
	}
}

func TestPayloadIsTriedAgainUntilItArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down, said: away}
		f, log := startScripted(t, agent, nil)
		sealed := someSpans(3)
		f.Accept(sealed)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if _, resolved := resolution(sealed.Delivery); resolved {
			t.Error("the delivery was resolved before the outcome")
		}
		if s := balanced(t, f, 3); s.Held != 3 || s.Reachable || s.QueuePayloads != 1 || s.QueueBytes == 0 {
			t.Errorf("stats %+v", s)
		}
		agent.comesBack()
		time.Sleep(longestPause)
		synctest.Wait()
		if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
		s := balanced(t, f, 3)
		if s.Flushed != 3 || s.QueueBytes != 0 || !s.Reachable || s.Payloads[ResultRetried] != uint64(agent.tried()-1) {
			t.Errorf("stats %+v after %d tries", s, agent.tried())
		}
		if lines := strings.Count(log.String(), "\n"); lines != 4 || !strings.Contains(log.String(), "again\" waiting") {
			t.Errorf("%d lines, want who is missing, the outage, who answers, the outage's end:\n%s", lines, log)
		}
	})
}

func TestPausesGrowAndStayWithinTheirBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, _ := startScripted(t, agent, func(c *Config) { c.RetryAge = 10 * time.Minute })
		f.Accept(someSpans(1))
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

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: always(attempt{outcome: notYet, err: errDown, after: 45 * time.Second})}
		f, _ := startScripted(t, agent, nil)
		f.Accept(someSpans(1))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(agent.tries) != 2 || agent.tries[1].at.Sub(agent.tries[0].at) != 45*time.Second {
			t.Errorf("tries %v", agent.tries)
		}
	})
}

func TestPayloadExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, log := startScripted(t, agent, nil)
		began := time.Now()
		first := someSpans(3)
		f.Accept(first)
		time.Sleep(time.Minute)
		f.Accept(someSpans(4))
		if err := first.Delivery.Wait(t.Context()); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("delivery %v", err)
		}
		if age := time.Since(began); age != DefaultRetryAge {
			t.Errorf("given up after %v, want %v", age, DefaultRetryAge)
		}
		synctest.Wait()
		s := balanced(t, f, 7)
		if s.Unsent[Expired] != 3 || s.Held != 4 || s.Payloads[ResultGivenUp] != 1 {
			t.Errorf("stats %+v", s)
		}
		if strings.Count(log.String(), "giving up") != 1 {
			t.Errorf("log:\n%s", log)
		}
	})
}

// The newest statistics are the ones that somebody waits for.
func TestFullQueueGivesUpTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, _ := startScripted(t, agent, nil)
		f.queue.maxBytes = 1000 // less than New would take
		var deliveries []*aggregate.Delivery
		for range 6 {
			sealed := someSpans(2)
			deliveries = append(deliveries, sealed.Delivery)
			f.Accept(sealed)
			synctest.Wait()
		}
		s := balanced(t, f, 12)
		if s.QueueBytes > 1000 || s.Unsent[QueueFull] != 12-s.Held || s.Held == 0 {
			t.Errorf("stats %+v", s)
		}
		for i, d := range deliveries {
			if _, givenUp := resolution(d); givenUp != (uint64(i) < s.Unsent[QueueFull]/2) {
				t.Errorf("cycle %d given up: %v", i, givenUp)
			}
		}
	})
}

// A payload that the agent keeps failing on must not hold up the others.
func TestFailingPayloadLetsOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: func(_ context.Context, p *payload) attempt {
			if p.sequence == 0 {
				return attempt{outcome: notYet, err: errDown}
			}
			return attempt{}
		}}
		f, _ := startScripted(t, agent, nil)
		for range 5 {
			f.Accept(someSpans(1))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := balanced(t, f, 5); s.Flushed != 4 || s.Held != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestAcceptDoesNotWaitForTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: func(ctx context.Context, _ *payload) attempt {
			<-ctx.Done()
			return attempt{outcome: unknown, err: errNoAnswer}
		}}
		f, _ := startScripted(t, agent, nil)
		began := time.Now()
		f.Accept(someSpans(1))
		synctest.Wait()
		f.Accept(someSpans(1))
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

func TestCloseTriesWhatWaitsOnceWithoutPause(t *testing.T) {
	for name, up := range map[string]bool{"agent up again": true, "agent still down": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &scripted{answer: down}
				f, _ := startScripted(t, agent, nil)
				sealed := someSpans(1)
				f.Accept(sealed)
				f.Accept(someSpans(2))
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

func TestCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: func(ctx context.Context, _ *payload) attempt {
			<-ctx.Done()
			return attempt{outcome: notYet, err: ctx.Err()}
		}}
		f, _ := startScripted(t, agent, nil)
		for range 3 {
			f.Accept(someSpans(1))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		f.Close(ctx)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("closing took %v", took)
		}
		late := someSpans(4)
		f.Accept(late)
		if s := balanced(t, f, 7); s.Unsent[Shutdown] != 7 || agent.tried() != 1 {
			t.Errorf("stats %+v after %d tries", s, agent.tried())
		}
		if err, _ := resolution(late.Delivery); !errors.Is(err, errClosed) {
			t.Errorf("delivery of a late cycle: %v", err)
		}
	})
}

func TestUnencodableSpansAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := startScripted(t, &scripted{}, func(c *Config) { c.MaxPayloadBytes = minPayloadBytes })
		var c cycle
		origin := c.origin(golden().Origins[0])
		for _, resource := range []string{"r", strings.Repeat("r", minPayloadBytes)} {
			key := golden().Keys[0].Key
			key.Resource = resource
			c.add(0, c.key(origin, key), 0, 1, 0, 1)
		}
		sealed := c.seal()
		f.Accept(sealed)
		synctest.Wait()
		if s := balanced(t, f, 2); s.Unsent[Unencodable] != 1 || s.Flushed != 1 {
			t.Errorf("stats %+v", s)
		}
		if err, _ := resolution(sealed.Delivery); !errors.Is(err, errUnencodable) || !strings.Contains(log.String(), "no payload") {
			t.Errorf("delivery %v, log:\n%s", err, log)
		}
	})
}

func TestEveryReasonAndResultIsThereFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{}, nil)
		s := f.Stats()
		if len(s.Unsent) != len(Reasons) || len(s.Payloads) != len(Results) {
			t.Errorf("stats %+v", s)
		}
	})
}
