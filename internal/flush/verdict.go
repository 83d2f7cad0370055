package flush

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// verdict is what one try means for the payload.
type verdict int

const (
	accepted  verdict = iota // the agent has it
	notYet                   // the agent certainly does not have it; try again
	refused                  // the agent does not have it and will not take it
	notWanted                // the agent has no such endpoint
	unknown                  // the agent may have it
)

// answer is the outcome of one try.
type answer struct {
	verdict verdict
	err     error         // nil only when accepted
	silent  bool          // nobody answered
	after   time.Duration // how long the agent asked us to wait
	state   string        // the agent's Datadog-Agent-State, if it answered
}

const (
	// maxRetryAfter bounds how long an agent can make us wait.
	maxRetryAfter = time.Minute
	// maxReason bounds what is read of an answer's body.
	maxReason = 1 << 10
)

// readAnswer is what an HTTP response means.
func readAnswer(resp *http.Response, now time.Time) answer {
	a := answer{state: resp.Header.Get("Datadog-Agent-State")}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return a
	}
	a.err = responseError(resp)
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		a.verdict = notWanted
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		a.verdict, a.after = notYet, retryAfter(resp.Header.Get("Retry-After"), now)
	default:
		a.verdict = refused
	}
	return a
}

// responseError quotes the agent's own words, as far as they are short.
func responseError(resp *http.Response) error {
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxReason))
	if text := strings.TrimSpace(string(said)); text != "" {
		return fmt.Errorf("agent answered %s: %q", resp.Status, text)
	}
	return fmt.Errorf("agent answered %s", resp.Status)
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
