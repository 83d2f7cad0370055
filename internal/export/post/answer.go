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
	maxRead    = 64 << 10 // maximum bytes of a response body that are read
	maxMessage = 1 << 10  // maximum bytes of an error message
)

// Answers maps status codes to their meanings. A key with one digit applies to all codes that begin
// with it. A 2xx code always means accepted; other codes without an entry mean refused.
type Answers map[int]Meaning

// Meaning is the meaning of a status code.
type Meaning struct {
	Outcome export.Outcome
	Advice  string // appended to the error, for operators
}

// of returns the meaning of a status code: that of the code itself, otherwise that of its first
// digit.
func (a Answers) of(status int) Meaning {
	for _, key := range [...]int{status, status / 100} {
		if meaning, ok := a[key]; ok {
			return meaning
		}
	}
	return Meaning{Outcome: export.OutcomeRefused}
}

// Answer is the result of a request.
type Answer struct {
	export.Attempt
	Code    int         // status code; 0 without a response
	Status  string      // such as "400 Bad Request"
	Header  http.Header // header of the response
	Body    []byte      // truncated to the read limit
	Message string      // error message in the body, if it is text or a google.rpc.Status; truncated
	Sent    http.Header // header of the request
}

// failed returns the result of a request without a response.
func failed(outcome export.Outcome, err error) Answer {
	return Answer{Attempt: export.Attempt{Outcome: outcome, Silent: true, Err: err}}
}

// read reads a response, with at most limit bytes of its body, and interprets its status code. name
// is the name of the destination in errors.
func (a Answers) read(name string, resp *http.Response, limit int64, now time.Time) Answer {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, limit))
	answer := Answer{Code: resp.StatusCode, Status: resp.Status, Header: resp.Header, Body: body}
	answer.Clock = export.ClockOf(resp.Header.Get("Date"), now)
	if answer.Code >= 200 && answer.Code < 300 {
		return answer
	}
	message, retryDelay := "", time.Duration(0)
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "application/x-protobuf" {
		status := otlpanswer.ReadStatus(body)
		message, retryDelay = status.Message, status.Retry
	} else if utf8.Valid(body) {
		message = string(body)
	}
	message = strings.TrimSpace(message)
	answer.Message = message[:min(len(message), maxMessage)]
	meaning := a.of(answer.Code)
	answer.Outcome = meaning.Outcome
	answer.Err = fmt.Errorf("%s answered %s%s%s", name, answer.Status, Quoted(answer.Message), meaning.Advice)
	if answer.Outcome == export.OutcomeNotYet {
		answer.After = max(retryDelay, otlpanswer.RetryAfter(resp.Header.Get("Retry-After"), now))
	}
	return answer
}

// Quoted formats a message of a destination for an error: after a colon, quoted and truncated. It
// returns "" if there is no message.
func Quoted(message string) string {
	if message = strings.TrimSpace(message); message == "" {
		return ""
	}
	return fmt.Sprintf(": %q", message[:min(len(message), maxMessage)])
}
