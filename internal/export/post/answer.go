package post

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

const (
	maxRead = 64 << 10 // of an answer's body
	maxSaid = 1 << 10  // of it that is shown
)

// Answers maps statuses to meanings. A number with one digit stands for all statuses that begin with it. A
// success is accepted in any case; other statuses without a row are refused.
type Answers map[int]Meaning

// Meaning is the meaning of a status.
type Meaning struct {
	Outcome export.Outcome
	Advice  string // what an operator can do about it
}

func (a Answers) of(status int) Meaning {
	for _, row := range [...]int{status, status / 100} {
		if meaning, is := a[row]; is {
			return meaning
		}
	}
	return Meaning{Outcome: export.OutcomeRefused}
}

// Answer is the result of a request.
type Answer struct {
	export.Attempt
	Code   int         // the status, 0 without an answer
	Status string      // such as "400 Bad Request"
	Header http.Header // the answer's
	Body   []byte      // as far as it was read
	Said   string      // in a body that is a text or a google.rpc.Status, as far as it is short
	Sent   http.Header // with the request
}

// failed is the result of a request without an answer.
func failed(outcome export.Outcome, err error) Answer {
	return Answer{Attempt: export.Attempt{Outcome: outcome, Silent: true, Err: err}}
}

// read reads a response, and at most so many bytes of its body.
func (a Answers) read(who string, resp *http.Response, most int64, now time.Time) Answer {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, most))
	answer := Answer{Code: resp.StatusCode, Status: resp.Status, Header: resp.Header, Body: body}
	answer.Clock = export.ClockOf(resp.Header.Get("Date"), now)
	if answer.Code >= 200 && answer.Code < 300 {
		return answer
	}
	said, wait := "", time.Duration(0)
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "application/x-protobuf" {
		status := otlpanswer.ReadStatus(body)
		said, wait = status.Message, status.Retry
	} else if utf8.Valid(body) {
		said = string(body)
	}
	said = strings.TrimSpace(said)
	answer.Said = said[:min(len(said), maxSaid)]
	meaning := a.of(answer.Code)
	answer.Outcome = meaning.Outcome
	answer.Err = fmt.Errorf("%s answered %s%s%s", who, answer.Status, Quoted(answer.Said), meaning.Advice)
	if answer.Outcome == export.OutcomeNotYet {
		answer.After = max(wait, otlpanswer.RetryAfter(resp.Header.Get("Retry-After"), now))
	}
	return answer
}

// Quoted is the text of a destination after a colon, or nothing.
func Quoted(said string) string {
	if said = strings.TrimSpace(said); said == "" {
		return ""
	}
	return fmt.Sprintf(": %q", said[:min(len(said), maxSaid)])
}
