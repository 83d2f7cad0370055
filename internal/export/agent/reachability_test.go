package agent

import (
	"bytes"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// If the agent is unavailable at the start of the daemon, the log has one warning, and one line
// when it answers.
func TestAgent_UnavailableAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down, info: noInfo}
		f, log := startScripted(t, agent, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if f.Stats().Reachable {
			t.Error("the agent is reachable")
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=WARN") ||
			!strings.Contains(text, "unix:///nowhere") || !strings.Contains(text, "--agent-url") {
			t.Errorf("log:\n%s", text)
		}
		agent.restore()
		time.Sleep(time.Hour)
		synctest.Wait()
		if !f.Stats().Reachable || strings.Count(log.String(), "\n") != 2 ||
			!strings.Contains(log.String(), "the agent responds") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// Daemon and agent often start together, so one failure is not logged.
func TestAgent_StartsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{info: noInfo}
		_, log := startScripted(t, agent, nil)
		time.Sleep(discoveryPause / 2)
		agent.restore()
		time.Sleep(time.Hour)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "the agent responds") {
			t.Errorf("log:\n%s", text)
		}
	})
}

// An auto-discovered agent is probed after each pause. Until it is found, no span is queued for it
// and nothing is logged. A server that does not accept statistics is not an agent. After it is
// found, it is a destination like any other.
func TestDiscovery_LogsNothingUntilFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down, info: noInfo}
		var log bytes.Buffer
		cfg := export.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}
		f := start(t, cfg, newExporter(Config{
			URL: URL{Network: "unix", Address: "/nowhere"}, AutoDiscovered: true, Log: cfg.Log,
		}, agent))
		for minute := range 10 {
			sealed := testcycle.Spans(3)
			f.Accept(sealed)
			time.Sleep(time.Minute)
			synctest.Wait()
			if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
				t.Errorf("delivery %v, resolved %t", err, resolved)
			}
			s := balanced(t, f, uint64(3*(minute+1)))
			if s.BeforeDiscovery == 0 || s.Pending+s.Flushed > 0 || s.State() != export.StateDiscovering || f.Describe().Discovered() {
				t.Errorf("stats %+v", s)
			}
			if minute == 5 {
				agent.mu.Lock()
				agent.info = func() (agentInfo, error) { return agentInfo{}, nil } // a server of another kind
				agent.mu.Unlock()
			}
		}
		if log.Len() > 0 || len(agent.asked) != 61 || agent.tried() > 0 ||
			!reflect.DeepEqual(f.Features(), DefaultFeatures()) {
			t.Errorf("asked %d times, tried %d times, features %+v, log:\n%s", len(agent.asked),
				agent.tried(),
				f.Features(), log.String())
		}
		agent.restore()
		time.Sleep(discoveryPause)
		synctest.Wait()
		f.Accept(testcycle.Spans(5))
		synctest.Wait()
		if s := balanced(t, f, 35); s.Flushed != 5 || s.BeforeDiscovery != 30 || s.State() != export.StateAccepting {
			t.Errorf("stats %+v", s)
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "found an agent") {
			t.Errorf("log:\n%s", text)
		}
		agent.mu.Lock()
		agent.answer, agent.info = down, noInfo
		agent.mu.Unlock()
		f.Accept(testcycle.Spans(2))
		synctest.Wait()
		if s := balanced(t, f, 37); s.Pending != 2 || s.State() != export.StateUnreachable {
			t.Errorf("unreachable again: stats %+v", s)
		}
	})
}

func TestPayload_RetriedUntilItArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down, info: noInfo}
		f, log := startScripted(t, agent, nil)
		sealed := testcycle.Spans(3)
		f.Accept(sealed)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if _, resolved := resolution(sealed.Delivery); resolved {
			t.Error("the delivery was resolved before the outcome")
		}
		if s := balanced(t, f, 3); s.Pending != 3 || s.Reachable || s.QueuePayloads != 1 || s.QueueBytes == 0 {
			t.Errorf("stats %+v", s)
		}
		agent.restore()
		time.Sleep(longestPause)
		synctest.Wait()
		if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
		s := balanced(t, f, 3)
		if s.Flushed != 3 || s.QueueBytes != 0 || !s.Reachable ||
			s.Payloads[export.ResultRetried] != uint64(agent.tried()-1) {
			t.Errorf("stats %+v after %d tries", s, agent.tried())
		}
		if lines := strings.Count(log.String(), "\n"); lines != 4 ||
			!strings.Contains(log.String(), "again\" queued") {
			t.Errorf("%d lines, want the unreachable agent, the outage, the response, the end of the outage:\n%s", lines,
				log)
		}
	})
}

// While payloads are not answered, /info is read. So a recovery is detected without traffic, and
// another kind of agent is known before the next payload.
func TestInfo_ReadWithoutResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{}
		f, _ := startScripted(t, agent, nil)
		synctest.Wait()
		if !f.Stats().Reachable {
			t.Error("an agent that answers is not reachable")
		}
		agent.mu.Lock()
		agent.answer, agent.info = always(failed(export.OutcomeUnknown, true, errDown)), noInfo
		agent.mu.Unlock()
		f.Accept(testcycle.Spans(1))
		synctest.Wait()
		if f.Stats().Reachable || len(agent.asked) != 2 {
			t.Errorf("after a lost answer: reachable %v, asked %d times", f.Stats().Reachable,
				len(agent.asked))
		}
		agent.restore()
		time.Sleep(discoveryPause)
		synctest.Wait()
		if !f.Stats().Reachable {
			t.Error("not reachable although it answers again")
		}
	})
}

func TestPause_EndsAtRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down, info: noInfo}
		f, _ := startScripted(t, agent, func(c *export.Config) { c.RetryAge = time.Hour })
		sealed := testcycle.Spans(1)
		f.Accept(sealed)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		before := agent.tried()
		agent.restore()
		began := time.Now()
		if err := sealed.Delivery.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited > discoveryPause || agent.tried() != before+1 {
			t.Errorf("arrived after %v and %d tries", waited, agent.tried()-before)
		}
	})
}

// An agent that answers without accepting payloads has its own state, whatever it answers. The
// log has one line about it. The payloads stay queued.
func TestAgent_RespondsWithoutAccepting(t *testing.T) {
	for name, test := range map[string]struct {
		answer post.Answer
		logged string
	}{
		"429 or 5xx": {
			failed(export.OutcomeNotYet, false, errDown),
			"rejects payloads for now",
		},
		"a refusal":                {failed(export.OutcomeRefused, false, errDown), "rejects payloads"},
		"no endpoint":              {failed(export.OutcomeNotWanted, false, errDown), "does not accept statistics"},
		"hanging except for /info": {failed(export.OutcomeNotYet, true, errDown), "is unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &scripted{answer: always(test.answer)}
				f, log := startScripted(t, agent, nil)
				synctest.Wait()
				if s := f.Stats(); s.State() != export.StateAccepting {
					t.Errorf("before the first payload the agent is %s", s.State())
				}
				f.Accept(testcycle.Spans(3))
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if s := balanced(t, f, 3); s.State() != export.StateRejecting || s.IsAccepting {
					t.Errorf("the agent is %s", s.State())
				}
				agent.restore()
				time.Sleep(longestPause)
				f.Accept(testcycle.Spans(3))
				synctest.Wait()
				if s := balanced(t, f, 6); s.State() != export.StateAccepting || !s.IsAccepting || s.OldestAge != 0 {
					t.Errorf("when it accepts again: %s, stats %+v", s.State(), s)
				}
				if strings.Count(log.String(), test.logged) != 1 {
					t.Errorf("log:\n%s", log)
				}
			})
		})
	}
}
