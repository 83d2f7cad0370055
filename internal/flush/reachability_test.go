package flush

import (
	"context"
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

// An agent that answers and does not take what it is offered is neither well nor away,
// whatever it answers, and the log says so once. The books hold what waits.
func TestAgentThatAnswersAndDoesNotTakeIsAStateOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		answer attempt
		logged string
	}{
		"429 or 5xx":                {attempt{outcome: notYet, err: errDown}, "answers and does not take payloads"},
		"a refusal":                 {attempt{outcome: refused, err: errDown}, "rejects payloads"},
		"no endpoint":               {attempt{outcome: notWanted, err: errDown}, "downgraded"},
		"hanging but for its /info": {attempt{outcome: notYet, silent: true, err: errNotAsked}, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &scripted{answer: always(test.answer)}
				f, log := startScripted(t, agent, nil)
				synctest.Wait()
				if s := f.Stats(); s.Agent() != AgentTakes {
					t.Errorf("before the first payload the agent is %s", s.Agent())
				}
				f.Accept(someSpans(3))
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if s := balanced(t, f, 3); s.Agent() != AgentAnswers || s.Takes {
					t.Errorf("the agent is %s", s.Agent())
				}
				agent.comesBack()
				time.Sleep(longestPause)
				f.Accept(someSpans(3))
				synctest.Wait()
				if s := balanced(t, f, 6); s.Agent() != AgentTakes || !s.Takes || s.OldestAge != 0 {
					t.Errorf("when it takes again: %s, stats %+v", s.Agent(), s)
				}
				if strings.Count(log.String(), test.logged) != 1 {
					t.Errorf("log:\n%s", log)
				}
			})
		})
	}
}

// How old the oldest payload is can be seen long before it is given up, also while it is
// under way.
func TestAgeOfTheOldestPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: answersAfter(7*time.Second, attempt{outcome: notYet, err: errDown})}
		f, _ := startScripted(t, agent, nil)
		if s := f.Stats(); s.OldestAge != 0 || s.MaxAge != DefaultRetryAge || s.QueueMaxBytes != DefaultRetryBytes {
			t.Errorf("stats %+v", s)
		}
		f.Accept(someSpans(1))
		for age := 5 * time.Second; age < DefaultRetryAge; age += 5 * time.Second {
			time.Sleep(5 * time.Second)
			f.Accept(someSpans(1))
			synctest.Wait()
			if s := f.Stats(); s.OldestAge != age {
				t.Errorf("the oldest is %v old, want %v", s.OldestAge, age)
			}
		}
	})
}

// An agent that takes every other payload has a line for the trouble and one for its end
// every ten seconds, however many payloads there are.
func TestLogOfAnAgentThatTakesSomePayloadsIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := startScripted(t, &scripted{answer: func(_ context.Context, p *payload) attempt {
			if p.sequence%2 == 0 {
				return attempt{outcome: refused, err: errDown}
			}
			return attempt{}
		}}, nil)
		for range 60 {
			f.Accept(origins(100))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		balanced(t, f, 6000)
		if lines := strings.Count(log.String(), "rejects payloads"); lines < 5 || lines > 6 || strings.Count(log.String(), "takes payloads again") > lines {
			t.Errorf("log:\n%s", log)
		}
	})
}
