package agent

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/dump"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/request"
)

// attempt is what became of one try.
type attempt struct {
	flush.Attempt
	state   string        // the agent's Datadog-Agent-State, if it answered
	status  int           // of the answer, 0 without one
	refusal *dump.Refusal // what was said on both sides, only when refused
}

// failed is a try without an answer.
func failed(outcome flush.Outcome, silent bool, err error) attempt {
	return attempt{Attempt: flush.Attempt{Outcome: outcome, Silent: silent, Err: err}}
}

// readAnswer is what an HTTP response means.
func readAnswer(resp *http.Response, now time.Time) attempt {
	a := attempt{state: resp.Header.Get("Datadog-Agent-State"), status: resp.StatusCode}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return a
	}
	said := request.Said(resp)
	a.Err = responseError(resp.Status, said)
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		a.Outcome = flush.OutcomeNotWanted
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		a.Outcome, a.After = flush.OutcomeNotYet, request.RetryAfter(resp.Header.Get("Retry-After"), now)
	default:
		a.Outcome = flush.OutcomeRefused
		a.refusal = &dump.Refusal{Status: resp.Status, Answer: resp.Header, Said: said}
	}
	return a
}

func responseError(status, said string) error {
	if said != "" {
		return fmt.Errorf("agent answered %s: %q", status, said)
	}
	return fmt.Errorf("agent answered %s", status)
}

// errNoAnswer is the cause of an unknown outcome.
var errNoAnswer = errors.New("no answer to a request that was written whole")
