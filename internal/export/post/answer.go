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

// meaningOf returns the entry for a status code such as 503. If there is none, it returns the entry for
// the first digit of the code, and otherwise the meaning "refused".
func (a Answers) meaningOf(status int) Meaning {
	if meaning, hasEntry := a[status]; hasEntry {
		return meaning
	}
	firstDigit := status / 100
	if meaning, hasEntry := a[firstDigit]; hasEntry {
		return meaning
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

// failedAnswer returns the result of a request without a response.
func failedAnswer(outcome export.Outcome, err error) Answer {
	return Answer{Attempt: export.Attempt{Outcome: outcome, Silent: true, Err: err}}
}

// readAnswer reads a response, with at most limit bytes of its body, and returns the outcome for its status code. If
// the code is not 2xx, the result has an error with the message in the body, and the delay before a retry, if the
// response contains one. name is the name of the destination in errors.
func (a Answers) readAnswer(name string, resp *http.Response, limit int64, now time.Time) Answer {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, limit))
	answer := Answer{Code: resp.StatusCode, Status: resp.Status, Header: resp.Header, Body: body}
	answer.Clock = export.ClockOf(resp.Header.Get("Date"), now)
	isSuccess := answer.Code/100 == 2
	if isSuccess {
		answer.Outcome = export.OutcomeAccepted
	} else {
		answer.setFailure(a.meaningOf(answer.Code), name, now)
	}
	return answer
}

// setFailure sets the fields of a response with an error code: its outcome, its message and an error with the message.
// If the response contains a delay before a retry, it also sets this delay. name is the name of the destination.
func (a *Answer) setFailure(meaning Meaning, name string, now time.Time) {
	message, retryDelay := readError(a.Header, a.Body)
	a.Message = truncate(message)
	a.Outcome = meaning.Outcome
	a.Err = fmt.Errorf("%s answered %s%s%s", name, a.Status, Quoted(a.Message), meaning.Advice)
	if a.Outcome == export.OutcomeNotYet {
		a.After = max(retryDelay, otlpanswer.RetryAfter(a.Header.Get("Retry-After"), now))
	}
}

// readError returns the error message in the body of a response. A body in protobuf is a google.rpc.Status, which can
// also contain the delay before a retry. Any other body is the message, unless it is not valid UTF-8.
func readError(header http.Header, body []byte) (message string, retryDelay time.Duration) {
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if mediaType == "application/x-protobuf" {
		status := otlpanswer.ReadStatus(body)
		return strings.TrimSpace(status.Message), status.Retry
	}
	if !utf8.Valid(body) {
		return "", 0
	}
	return strings.TrimSpace(string(body)), 0
}

// Quoted formats a message from a destination so that it can be appended to an error: a colon, a space and the
// message in quotes, truncated to maxMessage bytes. It returns "" if the message is empty.
func Quoted(message string) string {
	message = strings.TrimSpace(message)
	if message == "" {
		return ""
	}
	return fmt.Sprintf(": %q", truncate(message))
}

// truncate returns the first maxMessage bytes of a message.
func truncate(message string) string { return message[:min(len(message), maxMessage)] }
