package export

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// TestFlushes_ReportOutcomes follows one flush that is refused, retried and accepted, and one
// that the agent rejects.
func TestFlushes_ReportOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, _ := startScripted(t, agent, nil)
		f.Accept(testcycle.Spans(7))
		synctest.Wait()
		got := f.Flushes()
		if len(got) != 1 || got[0].Spans != 7 || got[0].Payloads != 1 || got[0].Pending != 1 ||
			got[0].Tries != 1 ||
			got[0].LastError != errDown.Error() || got[0].Bytes == 0 {
			t.Errorf("while the agent is unreachable: %+v", got)
		}
		agent.answers(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		got = f.Flushes()
		if got[0].Pending != 0 || got[0].Outcomes[ResultAccepted] != 1 || got[0].Tries < 2 {
			t.Errorf("after it came back: %+v", got[0])
		}
		agent.answers(always(Attempt{Outcome: OutcomeRefused, Err: errDown}))
		f.Accept(testcycle.Spans(3))
		synctest.Wait()
		if got = f.Flushes(); len(got) != 2 || got[0].Spans != 3 || got[0].Outcomes[ResultRejected] != 1 {
			t.Errorf("the newest comes first: %+v", got)
		}
	})
}

// TestFlushes_AreBounded expects the last flushes only, and none without spans.
func TestFlushes_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{}, nil)
		for n := range maxFlushes + 5 {
			f.Accept(testcycle.Spans(n + 1))
			f.Accept(testcycle.Spans(0))
		}
		synctest.Wait()
		got := f.Flushes()
		if len(got) != maxFlushes || got[0].Spans != maxFlushes+5 || got[maxFlushes-1].Spans != 6 {
			t.Errorf("%d flushes, the newest with %d spans", len(got), got[0].Spans)
		}
		got[0].Outcomes[ResultAccepted] = 99
		if f.Flushes()[0].Outcomes[ResultAccepted] != 1 {
			t.Error("a change of the returned outcomes changes the stored ones")
		}
	})
}

// A refusal is a response, so the destination is reachable.
func TestStats_RefusalIsReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{answer: always(Attempt{Outcome: OutcomeRefused, Err: errDown})},
			nil)
		f.Accept(testcycle.Spans(1))
		synctest.Wait()
		if !f.Stats().Reachable {
			t.Error("a refusing destination is not reachable")
		}
	})
}

// If an agent accepts every other payload, the log has one line for the failure and one for the
// recovery per interval, however many payloads are sent.
func TestLog_AlternatingAgentIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := startScripted(t, &scripted{answer: func(_ context.Context, p *Payload) Attempt {
			if p.sequence%2 == 0 {
				return Attempt{Outcome: OutcomeRefused, Err: errDown}
			}
			return Attempt{}
		}}, nil)
		for range 60 {
			f.Accept(testcycle.Origins(100))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		balanced(t, f, 6000)
		if lines := strings.Count(log.String(), "rejects payloads"); lines < 5 || lines > 6 ||
			strings.Count(log.String(), "accepts payloads again") > lines {
			t.Errorf("log:\n%s", log)
		}
	})
}

// A warning with every accepted payload is logged once per hour, and costs no span.
func TestLog_WarningOncePerHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warning := Attempt{Err: errors.New("soon there will be a limit")}
		f, log := startScripted(t, &scripted{answer: always(warning)}, nil)
		for range 90 {
			f.Accept(testcycle.Spans(2))
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if s := balanced(t, f, 180); s.Flushed != 180 || s.State() != StateAccepting {
			t.Errorf("%+v", s)
		}
		if lines := strings.Count(log.String(), "soon there will be a limit"); lines != 2 {
			t.Errorf("%d lines of log in an hour and a half:\n%s", lines, log)
		}
	})
}

// TestClockOf parses Date headers, valid and invalid ones.
func TestClockOf(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if c := ClockOf("Fri, 02 Jan 2026 03:05:05 GMT", now); c.Ahead != time.Minute || !c.At.Equal(now) {
		t.Errorf("%+v", c)
	}
	for _, none := range []string{"", "yesterday"} {
		if c := ClockOf(none, now); c != (Clock{}) {
			t.Errorf("%q: %+v", none, c)
		}
	}
}
