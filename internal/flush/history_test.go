package flush

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush/testcycle"
)

// TestFlushesSayWhatBecameOfThem follows one flush through a OutcomeRefused try to its
// acceptance, and one that the agent rejects.
func TestFlushesSayWhatBecameOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: down}
		f, _ := startScripted(t, agent, nil)
		f.Accept(testcycle.Spans(7))
		synctest.Wait()
		got := f.Flushes()
		if len(got) != 1 || got[0].Spans != 7 || got[0].Payloads != 1 || got[0].Pending != 1 ||
			got[0].Tries != 1 ||
			got[0].Said != errDown.Error() || got[0].Bytes == 0 {
			t.Errorf("while the agent is away: %+v", got)
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

// TestFlushesAreBounded keeps the last ones, and none without spans.
func TestFlushesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{}, nil)
		for n := range keptFlushes + 5 {
			f.Accept(testcycle.Spans(n + 1))
			f.Accept(testcycle.Spans(0))
		}
		synctest.Wait()
		got := f.Flushes()
		if len(got) != keptFlushes || got[0].Spans != keptFlushes+5 || got[keptFlushes-1].Spans != 6 {
			t.Errorf("%d flushes, the newest with %d spans", len(got), got[0].Spans)
		}
		got[0].Outcomes[ResultAccepted] = 99
		if f.Flushes()[0].Outcomes[ResultAccepted] != 1 {
			t.Error("who looks can change what others see")
		}
	})
}
