package flush

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/dump"
)

// outcome is what one try means for the payload.
type outcome int

const (
	accepted  outcome = iota // the agent has it
	notYet                   // the agent certainly does not have it; try again
	refused                  // the agent does not have it and will not take it
	notWanted                // the agent has no such endpoint
	unknown                  // the agent may have it
)

// attempt is what became of one try.
type attempt struct {
	outcome outcome
	err     error         // nil only when accepted
	silent  bool          // nobody answered
	after   time.Duration // how long the agent asked us to wait
	state   string        // the agent's Datadog-Agent-State, if it answered
	status  int           // of the answer, 0 without one
	refusal *dump.Refusal // what was said on both sides, only when refused
}

const (
	// maxRetryAfter bounds how long an agent can make us wait.
	maxRetryAfter = time.Minute
	// maxReason bounds what is read of an answer's body.
	maxReason = 1 << 10
)

// readAnswer is what an HTTP response means.
func readAnswer(resp *http.Response, now time.Time) attempt {
	a := attempt{state: resp.Header.Get("Datadog-Agent-State"), status: resp.StatusCode}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return a
	}
	said := readSaid(resp)
	a.err = responseError(resp.Status, said)
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		a.outcome = notWanted
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		a.outcome, a.after = notYet, retryAfter(resp.Header.Get("Retry-After"), now)
	default:
		a.outcome = refused
		a.refusal = &dump.Refusal{Status: resp.Status, Answer: resp.Header, Said: said}
	}
	return a
}

// readSaid is the agent's own words, as far as they are short.
func readSaid(resp *http.Response) string {
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxReason))
	return strings.TrimSpace(string(said))
}

func responseError(status, said string) error {
	if said != "" {
		return fmt.Errorf("agent answered %s: %q", status, said)
	}
	return fmt.Errorf("agent answered %s", status)
}

// retryAfter reads either form of the header, seconds or a date.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// errNoAnswer is the cause of an ambiguous outcome.
var errNoAnswer = errors.New("no answer to a request that was written whole")
