package flush

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush/testcycle"
)

// An agent that takes every other payload has a line for the trouble and one for its end
// every ten seconds, however many payloads there are.
func TestLogOfAnAgentThatTakesSomePayloadsIsShort(t *testing.T) {
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
		if lines := strings.Count(log.String(), "rejects payloads"); lines < 5 || lines > 6 || strings.Count(log.String(), "takes payloads again") > lines {
			t.Errorf("log:\n%s", log)
		}
	})
}
