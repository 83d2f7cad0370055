package flush

import (
	"context"
	"errors"
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
		if lines := strings.Count(log.String(), "rejects payloads"); lines < 5 || lines > 6 ||
			strings.Count(log.String(), "takes payloads again") > lines {
			t.Errorf("log:\n%s", log)
		}
	})
}

// A warning that comes with every payload has a line an hour, and costs no span.
func TestAWarningIsLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warning := Attempt{Err: errors.New("soon there will be a limit")}
		f, log := startScripted(t, &scripted{answer: always(warning)}, nil)
		for range 90 {
			f.Accept(testcycle.Spans(2))
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if s := balanced(t, f, 180); s.Flushed != 180 || s.State() != Takes {
			t.Errorf("%+v", s)
		}
		if lines := strings.Count(log.String(), "soon there will be a limit"); lines != 2 {
			t.Errorf("%d lines of log in an hour and a half:\n%s", lines, log)
		}
	})
}
