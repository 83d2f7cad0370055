package flush

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An agent that is away when the daemon starts has one line, however long it
// lasts, and one when it comes.
func TestAgentAwayAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down, said: away}
		f, log := startScripted(t, agent, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if f.Stats().Reachable {
			t.Error("nobody is reachable")
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=WARN") ||
			!strings.Contains(text, "unix:///nowhere") || !strings.Contains(text, "--agent-url") {
			t.Errorf("log:\n%s", text)
		}
		agent.comesBack()
		time.Sleep(time.Hour)
		synctest.Wait()
		if !f.Stats().Reachable || strings.Count(log.String(), "\n") != 2 || !strings.Contains(log.String(), "agent answers") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// Daemon and agent often start together, which is nothing to warn of.
func TestAgentThatStartsALittleLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{said: away}
		_, log := startScripted(t, agent, nil)
		time.Sleep(discoveryPause / 2)
		agent.comesBack()
		time.Sleep(time.Hour)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "agent answers") {
			t.Errorf("log:\n%s", text)
		}
	})
}

// While nobody answers the agent is asked what it wants, so that contact is seen
// again without traffic, and an agent of another kind in its place is known
// before the next payload.
func TestSilenceIsLookedInto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{}
		f, _ := startScripted(t, agent, nil)
		synctest.Wait()
		if !f.Stats().Reachable {
			t.Error("an agent that answers is not reachable")
		}
		agent.mu.Lock()
		agent.answer, agent.said = always(attempt{outcome: unknown, silent: true, err: errNoAnswer}), away
		agent.mu.Unlock()
		f.Accept(someSpans(1))
		synctest.Wait()
		if f.Stats().Reachable || len(agent.asked) != 2 {
			t.Errorf("after a lost answer: reachable %v, asked %d times", f.Stats().Reachable, len(agent.asked))
		}
		agent.comesBack()
		time.Sleep(discoveryPause)
		synctest.Wait()
		if !f.Stats().Reachable {
			t.Error("not reachable though it answers again")
		}
	})
}

// An agent that is back is not kept waiting for the end of a long pause.
func TestReturnEndsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down, said: away}
		f, _ := startScripted(t, agent, func(c *Config) { c.RetryAge = time.Hour })
		sealed := someSpans(1)
		f.Accept(sealed)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		before := agent.tried()
		agent.comesBack()
		began := time.Now()
		if err := sealed.Delivery.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited > discoveryPause || agent.tried() != before+1 {
			t.Errorf("arrived after %v and %d tries", waited, agent.tried()-before)
		}
	})
}

// A refusal is an answer.
func TestWhoRefusesIsReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{answer: always(attempt{outcome: refused, err: errDown})}, nil)
		f.Accept(someSpans(1))
		synctest.Wait()
		if !f.Stats().Reachable {
			t.Error("who refuses was heard of")
		}
	})
}
