package flush

import (
	"testing"
	"testing/synctest"

	"github.com/spanstatsd/spanstatsd/internal/flush/testcycle"
)

// A refusal is an answer.
func TestWhoRefusesIsReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := startScripted(t, &scripted{answer: always(Attempt{Outcome: OutcomeRefused, Err: errDown})},
			nil)
		f.Accept(testcycle.Spans(1))
		synctest.Wait()
		if !f.Stats().Reachable {
			t.Error("who refuses was heard of")
		}
	})
}
