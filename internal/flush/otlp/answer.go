package otlp

import (
	"cmp"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/request"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

const (
	// maxAnswer bounds what is read of an answer's body.
	maxAnswer = 64 << 10
	// maxSaid bounds what is shown of it.
	maxSaid = 1 << 10
)

// contentType is that of requests, and of answers in kind.
const contentType = "application/x-protobuf"

// retryable says whether the specification has a request sent again that was answered so.
func retryable(code int) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// readAnswer is what an answer means for a payload. Everything but success and what is
// retryable is for good, redirections too.
func readAnswer(resp *http.Response, p *flush.Payload, compressed bool, now time.Time) flush.Attempt {
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return readSuccess(answer, p, compressed)
	}
	said, wait := readRefusal(resp.Header, answer)
	a := flush.Attempt{Outcome: flush.OutcomeRefused, Err: fmt.Errorf("receiver answered %s%s%s", resp.Status, quoted(said), advice(resp.StatusCode))}
	if retryable(resp.StatusCode) {
		a.Outcome = flush.OutcomeNotYet
		a.After = min(max(wait, request.RetryAfter(resp.Header.Get("Retry-After"), now)), request.MaxRetryAfter)
	}
	return a
}

// readSuccess counts what a receiver left out of a payload that it took.
func readSuccess(answer []byte, p *flush.Payload, compressed bool) flush.Attempt {
	partial := readPartial(answer)
	if partial.rejected == 0 {
		a := flush.Attempt{Outcome: flush.OutcomeAccepted}
		if partial.said != "" {
			a.Err = fmt.Errorf("receiver took a payload, and said%s", quoted(partial.said))
		}
		return a
	}
	return flush.Attempt{
		Outcome:  flush.OutcomeAccepted,
		Err:      fmt.Errorf("receiver rejected %d data points of a payload%s", partial.rejected, quoted(partial.said)),
		Rejected: mostLeftOut(p, partial.rejected, compressed),
	}
}

// mostLeftOut is how many spans of a payload at most are lost with so many of its points.
func mostLeftOut(p *flush.Payload, points uint64, compressed bool) uint64 {
	if said, is := p.Totals.(*totals.Said); is {
		return said.Most(points)
	}
	sent := p.Body
	if compressed {
		sent = unpacked(sent)
	}
	return min(p.Spans, max(1, mostSpans(sent, points)))
}

// readRefusal is what a receiver says in the body of an answer, a google.rpc.Status or a
// text, and how long it asks us to wait there.
func readRefusal(h http.Header, answer []byte) (said string, wait time.Duration) {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch {
	case kind == contentType:
		s := readStatus(answer)
		return s.said, s.retry
	case utf8.Valid(answer):
		return string(answer), 0
	}
	return "", 0
}

// quoted is what a receiver said, behind a colon, or nothing.
func quoted(said string) string {
	if said = strings.TrimSpace(said); said == "" {
		return ""
	}
	return fmt.Sprintf(": %q", said[:min(len(said), maxSaid)])
}

// advice is what an operator can do about an answer.
func advice(code int) string {
	return cmp.Or(map[int]string{
		http.StatusUnauthorized:          " (set OTEL_EXPORTER_OTLP_HEADERS)",
		http.StatusForbidden:             " (see OTEL_EXPORTER_OTLP_HEADERS)",
		http.StatusNotFound:              " (is that its path? most have /v1/metrics)",
		http.StatusRequestEntityTooLarge: " (raise what the receiver takes)",
		http.StatusUnsupportedMediaType:  " (it takes no http/protobuf, or no gzip)",
	}[code])
}
